// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/dir_log.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int dir_log_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	return expect_size(item, sizeof(struct disk_dir_log), err);
}

static void dir_log_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_dir_log *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "end", "\t\tdir log end ", le64_get(d->end));
	emit_text(e, "\n");
}

const struct item_type item_type_dir_log_item = {
	.type = KEY_DIR_LOG_ITEM,
	.name = "DIR_LOG_ITEM",
	.min_size = sizeof(struct disk_dir_log),
	.validate = dir_log_validate,
	.render = dir_log_render,
};

const struct item_type item_type_dir_log_index = {
	.type = KEY_DIR_LOG_INDEX,
	.name = "DIR_LOG_INDEX",
	.min_size = sizeof(struct disk_dir_log),
	.validate = dir_log_validate,
	.render = dir_log_render,
};
