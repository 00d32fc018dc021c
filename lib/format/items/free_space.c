// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/free_space.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

/* Validates the key as a range of sectors. */
static int range_check(const struct item_ctx *ctx, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = expect_aligned(ctx, "key.objectid", key->objectid, err);

	if (ret < 0)
		return ret;
	if (!key->offset || !sector_aligned(ctx, key->offset) || key->objectid + key->offset < key->objectid)
		return err_corrupt(err, "key.offset", "invalid range of %" PRIu64 " bytes at %" PRIu64, key->offset,
				   key->objectid);
	return 0;
}

int free_space_info_decode(const struct item_ctx *ctx, const struct item *item, struct free_space_info *ret,
			   struct btrkit_error *err)
{
	const struct disk_free_space_info *d = (const struct disk_free_space_info *)item->data;
	int r;

	if ((r = expect_size(item, sizeof(*d), err)) < 0 || (r = range_check(ctx, &item->key, err)) < 0)
		return r;
	*ret = (struct free_space_info){
		.start = item->key.objectid,
		.length = item->key.offset,
		.extent_count = le32_get(d->extent_count),
		.flags = le32_get(d->flags),
	};
	return 0;
}

static int info_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct free_space_info info;

	return free_space_info_decode(ctx, item, &info, err);
}

static void info_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_free_space_info *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "extent_count", "\t\tfree space info extent count ", le32_get(d->extent_count));
	emit_u64(e, "flags", " flags ", le32_get(d->flags));
	emit_text(e, "\n");
}

static int extent_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	int ret = expect_size(item, 0, err);

	return ret < 0 ? ret : range_check(ctx, &item->key, err);
}

static void extent_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	(void)item;
	(void)flags;
	emit_text(e, "\t\tfree space extent\n");
}

/* There is one bit per sector, rounded up to a full byte. */
static int bitmap_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	const uint64_t sectors = item->key.offset / ctx->sectorsize;
	int ret = range_check(ctx, &item->key, err);

	if (ret < 0)
		return ret;
	if (item->size != sectors / 8 + !!(sectors % 8))
		return err_corrupt(err, "item_size", "bitmap has %" PRIu32 " bytes for %" PRIu64 " sectors", item->size,
				   sectors);
	return 0;
}

static void bitmap_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	(void)flags;
	emit_text(e, "\t\tfree space bitmap\n");
	if (e->form == EMIT_JSON)
		emit_hex(e, "bitmap", "", item->data, item->size);
}

const struct item_type item_type_free_space_info = {
	.type = KEY_FREE_SPACE_INFO,
	.name = "FREE_SPACE_INFO",
	.min_size = sizeof(struct disk_free_space_info),
	.validate = info_validate,
	.render = info_render,
};

const struct item_type item_type_free_space_extent = {
	.type = KEY_FREE_SPACE_EXTENT,
	.name = "FREE_SPACE_EXTENT",
	.validate = extent_validate,
	.render = extent_render,
};

const struct item_type item_type_free_space_bitmap = {
	.type = KEY_FREE_SPACE_BITMAP,
	.name = "FREE_SPACE_BITMAP",
	.min_size = 1,
	.validate = bitmap_validate,
	.render = bitmap_render,
};
