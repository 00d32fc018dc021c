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
#ifdef HAVE_XXHASH
#define XXHASH "+xxhash"
#else
#define XXHASH "-xxhash"
#endif
#ifdef HAVE_GCRYPT
#define GCRYPT "+gcrypt"
#else
#define GCRYPT "-gcrypt"
#endif
#ifdef HAVE_BLKID
#define BLKID "+blkid"
#else
#define BLKID "-blkid"
#endif
#ifdef HAVE_UUID
#define UUID "+uuid"
#else
#define UUID "-uuid"
#endif
#ifdef HAVE_ZLIB
#define ZLIB "+zlib"
#else
#define ZLIB "-zlib"
#endif
#ifdef HAVE_LZO
#define LZO "+lzo"
#define LICENSE "GPL-2.0-or-later"
#else
#define LZO "-lzo"
#define LICENSE "LGPL-2.1-or-later"
#endif
#ifdef HAVE_ZSTD
#define ZSTD "+zstd"
#else
#define ZSTD "-zstd"
#endif
#ifdef HAVE_ARCHIVE
#define ARCHIVE "+archive"
#else
#define ARCHIVE "-archive"
#endif

const char *btrkit_build_features(void)
{
	return ISAL " " XXHASH " " GCRYPT " " BLKID " " UUID " " ZLIB " " LZO " " ZSTD " " ARCHIVE;
}

const char *btrkit_build_license(void)
{
	return LICENSE;
}
