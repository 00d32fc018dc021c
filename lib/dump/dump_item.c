// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the contents of a single item. */
#include <btrkit/dump.h>

#include "lib/base/emit.h"
#include "lib/base/err.h"
#include "lib/format/item.h"
#include "lib/format/items/render.h"
#include "lib/tree/filesystem.h"

int btrkit_dump_item(struct btrkit_fs *fs, uint64_t tree, const struct btrkit_key *key, const void *data, size_t size,
		     unsigned flags, enum btrkit_format format, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err)
{
	const unsigned render = (flags & BTRKIT_DUMP_HIDE_NAMES ? RENDER_HIDE_NAMES : 0) | RENDER_CSUM_ITEMS;
	const struct item item = { .key = *key, .data = data, .size = (uint32_t)size };
	const struct item_type *type = item_type_find(key);
	struct item_ctx about = fs->items;
	struct emit e;

	if (flags & ~(unsigned)BTRKIT_DUMP_HIDE_NAMES)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", flags & ~(unsigned)BTRKIT_DUMP_HIDE_NAMES);
	if (format != BTRKIT_FORMAT_TEXT && format != BTRKIT_FORMAT_JSON)
		return err_set(err, BTRKIT_INVALID, "unknown format");
	if (size > fs->geometry.nodesize)
		return err_set(err, BTRKIT_INVALID, "an item of %zu bytes is larger than a tree block", size);
	if (emit_init(&e, format == BTRKIT_FORMAT_JSON ? EMIT_JSON : EMIT_TEXT, write, ctx))
		return err_nomem(err);
	about.owner = tree;
	emit_object(&e, NULL);
	if (type)
		type->render(&e, &about, &item, render);
	else
		render_data(&e, "data", data, size, render);
	emit_object_end(&e);
	return emit_finish(&e);
}
