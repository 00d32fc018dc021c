// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/emit_list.h"

#include "lib/base/err.h"

int list_begin(struct emit *e, enum btrkit_format format, const char *command, btrkit_write_fn write, void *ctx,
	       struct btrkit_error *err)
{
	if (format != BTRKIT_FORMAT_TEXT && format != BTRKIT_FORMAT_JSON)
		return err_set(err, BTRKIT_INVALID, "unknown format");
	if (emit_init(e, format == BTRKIT_FORMAT_JSON ? EMIT_JSON : EMIT_TEXT, write, ctx))
		return err_nomem(err);
	emit_header(e, command);
	return 0;
}

int list_end(struct emit *e, int ret)
{
	if (!ret)
		return emit_finish(e);
	emit_abandon(e);
	return ret;
}
