// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/version.h>

#include "config.h"

const char *btrkit_version(void)
{
	return BTRKIT_VERSION;
}

#ifdef HAVE_ISAL
#define ISAL "+isal"
#else
#define ISAL "-isal"
#endif
#ifdef HAVE_BLKID
#define BLKID "+blkid"
#else
#define BLKID "-blkid"
#endif

const char *btrkit_build_features(void)
{
	return ISAL " " BLKID;
}

const char *btrkit_build_license(void)
{
	return "LGPL-2.1-or-later";
}
