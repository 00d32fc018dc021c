// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/plain.h"

#include "lib/format/items/render.h"

static int plain_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	(void)item;
	(void)err;
	return 0;
}

static void plain_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	switch (item->key.type) {
	case KEY_ORPHAN_ITEM:
		emit_text(e, "\t\torphan item\n");
		break;
	case KEY_CSUM_ITEM:
		emit_text(e, "\t\tcsum item\n");
		break;
	case KEY_EXTENT_REF_V0:
		emit_text(e, "\t\textent ref v0 (deprecated)\n");
		break;
	}
	if (item->size)
		render_data(e, "data", item->data, item->size, flags);
}

const struct item_type item_type_verity_merkle = {
	.type = KEY_VERITY_MERKLE_ITEM,
	.name = "VERITY_MERKLE_ITEM",
	.validate = plain_validate,
	.render = plain_render,
};

const struct item_type item_type_orphan = {
	.type = KEY_ORPHAN_ITEM,
	.name = "ORPHAN_ITEM",
	.validate = plain_validate,
	.render = plain_render,
};

const struct item_type item_type_old_csum = {
	.type = KEY_CSUM_ITEM,
	.name = "CSUM_ITEM",
	.validate = plain_validate,
	.render = plain_render,
};

const struct item_type item_type_extent_ref_v0 = {
	.type = KEY_EXTENT_REF_V0,
	.name = "EXTENT_REF_V0",
	.validate = plain_validate,
	.render = plain_render,
};

const struct item_type item_type_identity_remap = {
	.type = KEY_IDENTITY_REMAP,
	.name = "IDENTITY_REMAP",
	.validate = plain_validate,
	.render = plain_render,
};

const struct item_type item_type_qgroup_relation = {
	.type = KEY_QGROUP_RELATION,
	.name = "QGROUP_RELATION",
	.validate = plain_validate,
	.render = plain_render,
};
