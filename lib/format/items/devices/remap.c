// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/remap.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int remap_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	return expect_size(item, sizeof(struct disk_remap), err);
}

static void remap_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_remap *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "address", "\t\taddress ", le64_get(d->address));
	emit_text(e, "\n");
}

const struct item_type item_type_remap = {
	.type = KEY_REMAP,
	.name = "REMAP",
	.min_size = sizeof(struct disk_remap),
	.validate = remap_validate,
	.render = remap_render,
};

const struct item_type item_type_remap_backref = {
	.type = KEY_REMAP_BACKREF,
	.name = "REMAP_BACKREF",
	.min_size = sizeof(struct disk_remap),
	.validate = remap_validate,
	.render = remap_render,
};
