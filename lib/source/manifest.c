// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/state.h"

#include "lib/base/err.h"

int source_read_manifest(struct source *s, struct btrkit_error *err)
{
	(void)s;
	return err_set(err, BTRKIT_UNSUPPORTED, "manifests are not read by this build");
}
