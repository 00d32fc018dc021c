// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/block_group.h"

#include "lib/format/feature_bits.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int block_group_check_flags(uint64_t flags, struct btrkit_error *err)
{
	const uint64_t profile = flags & BG_PROFILE_MASK;

	if (profile & (profile - 1))
		return err_corrupt(err, "flags", "more than one block group profile in 0x%" PRIx64, flags);
	switch (flags & BG_TYPE_MASK) {
	case BG_DATA:
	case BG_METADATA:
	case BG_SYSTEM:
	case BG_METADATA_REMAP:
	case BG_DATA | BG_METADATA:
		return 0;
	default:
		return err_corrupt(err, "flags", "no valid block group type in 0x%" PRIx64, flags);
	}
}

int block_group_decode(const struct item_ctx *ctx, const struct item *item, struct block_group *ret,
		       struct btrkit_error *err)
{
	const struct disk_block_group *d = (const struct disk_block_group *)item->data;
	const bool remap = ctx->incompat & INCOMPAT_REMAP_TREE;
	struct block_group bg = { .start = item->key.objectid, .length = item->key.offset };
	int r = expect_size(item, remap ? sizeof(struct disk_block_group_remap) : sizeof(*d), err);

	if (r < 0)
		return r;
	bg.used = le64_get(d->used);
	bg.chunk_objectid = le64_get(d->chunk_objectid);
	bg.flags = le64_get(d->flags);
	if (!bg.length)
		return err_corrupt(err, "key.offset", "block group has zero length");
	/* With extent-tree-v2, this is the number of a global root. */
	if (!(ctx->incompat & INCOMPAT_EXTENT_TREE_V2) && bg.chunk_objectid != OID_FIRST_CHUNK_TREE)
		return err_corrupt(err, "chunk_objectid", "block group has chunk_objectid %" PRIu64, bg.chunk_objectid);
	if (bg.used > bg.length)
		return err_corrupt(err, "used", "block group has %" PRIu64 " bytes used, length %" PRIu64, bg.used,
				   bg.length);
	r = block_group_check_flags(bg.flags, err);
	if (r < 0)
		return r;
	*ret = bg;
	return 0;
}

static int block_group_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct block_group bg;

	return block_group_decode(ctx, item, &bg, err);
}

static void block_group_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_block_group *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "used", "\t\tblock group used ", le64_get(d->used));
	emit_u64(e, "chunk_objectid", " chunk_objectid ", le64_get(d->chunk_objectid));
	bg_flags_emit(e, "flags", " flags ", le64_get(d->flags));
	bg_flags_names_emit(e, "flags_names", le64_get(d->flags));
	emit_text(e, "\n");
	if (e->form == EMIT_JSON && item->size >= sizeof(struct disk_block_group_remap)) {
		const struct disk_block_group_remap *remap = (const struct disk_block_group_remap *)item->data;

		emit_u64(e, "remap_bytes", "", le64_get(remap->remap_bytes));
		emit_u64(e, "identity_remap_count", "", le32_get(remap->identity_remap_count));
	}
}

const struct item_type item_type_block_group = {
	.type = KEY_BLOCK_GROUP_ITEM,
	.name = "BLOCK_GROUP_ITEM",
	.min_size = sizeof(struct disk_block_group),
	.validate = block_group_validate,
	.render = block_group_render,
};
