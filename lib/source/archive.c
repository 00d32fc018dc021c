// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/source/state.h"

#include "lib/base/err.h"

int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err)
{
	(void)s;
	(void)sink;
	return err_set(err, BTRKIT_UNSUPPORTED, "archives are not read by this build");
}
