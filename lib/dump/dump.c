// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump.h"

#include "lib/base/err.h"
#include "lib/format/item.h"

#define FLAGS_KNOWN ((BTRKIT_DUMP_COMPAT_6_19 << 1) - 1)

int dump_like(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump *ret, struct btrkit_error *err)
{
	*ret = (struct dump){
		.fs = fs,
		.render = (o->flags & BTRKIT_DUMP_HIDE_NAMES ? RENDER_HIDE_NAMES : 0) |
			  (o->flags & BTRKIT_DUMP_CSUM_ITEMS ? RENDER_CSUM_ITEMS : 0) |
			  (o->flags & BTRKIT_DUMP_COMPAT_6_19 ? RENDER_COMPAT_6_19 : 0),
		.csum_headers = o->flags & BTRKIT_DUMP_CSUM_HEADERS,
		.tell = o->lost,
		.tell_ctx = o->lost_ctx,
	};
	if (o->flags & ~FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", o->flags & ~FLAGS_KNOWN);
	if (o->format != BTRKIT_FORMAT_TEXT && o->format != BTRKIT_FORMAT_JSON)
		return err_set(err, BTRKIT_INVALID, "unknown format");
	if (o->flags & BTRKIT_DUMP_COMPAT_6_19 && o->format != BTRKIT_FORMAT_TEXT)
		return err_set(err, BTRKIT_INVALID, "the words of another version can only be selected for text");
	if (o->fields && o->format != BTRKIT_FORMAT_JSON)
		return err_set(err, BTRKIT_INVALID, "members can only be selected for JSON");
	ret->e.form = o->format == BTRKIT_FORMAT_JSON ? EMIT_JSON : EMIT_TEXT;
	return o->fields ? dump_choose(o->fields, &ret->choice, err) : 0;
}
