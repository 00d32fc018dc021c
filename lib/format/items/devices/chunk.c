// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/chunk.h"

#include "lib/format/feature_bits.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"
#include "lib/format/raid.h"

/* Linux has 32-bit numbers for the stripes in a chunk. */
#define CHUNK_LENGTH_LIMIT ((uint64_t)UINT32_MAX << CHUNK_STRIPE_SHIFT)

static int chunk_check_type(const struct item_ctx *ctx, uint64_t type, struct btrkit_error *err)
{
	const uint64_t profile = type & BG_PROFILE_MASK;
	uint64_t known = BG_DATA | BG_SYSTEM | BG_METADATA | BG_PROFILE_MASK;

	if (ctx->incompat & INCOMPAT_REMAP_TREE)
		known |= BG_REMAPPED | BG_METADATA_REMAP;
	if (type & ~known)
		return err_corrupt(err, "type", "unknown chunk type bits 0x%" PRIx64, type & ~known);
	if (profile & (profile - 1))
		return err_corrupt(err, "type", "more than one chunk profile in 0x%" PRIx64, type);
	if (!(type & BG_TYPE_MASK))
		return err_corrupt(err, "type", "no chunk type in 0x%" PRIx64, type);
	if ((type & BG_SYSTEM) && (type & (BG_METADATA | BG_DATA)))
		return err_corrupt(err, "type", "system chunk has an additional type in 0x%" PRIx64, type);
	if ((type & BG_METADATA) && (type & BG_DATA) && !(ctx->incompat & INCOMPAT_MIXED_GROUPS))
		return err_corrupt(err, "type", "mixed chunk 0x%" PRIx64 " without the mixed-groups feature", type);
	return 0;
}

static int chunk_check_stripes(const struct chunk *c, struct btrkit_error *err)
{
	const struct raid_profile *raid = raid_profile_find(c->type);

	/* A remapped chunk may have no stripes left, if all of its data was moved. */
	if (c->type & BG_REMAPPED) {
		if (c->num_stripes && c->num_stripes < raid->copies)
			return err_corrupt(err, "num_stripes", "%u stripes in a chunk with %u copies", c->num_stripes,
					   raid->copies);
		return 0;
	}
	if (c->num_stripes < raid->min_stripes || (raid->max_stripes && c->num_stripes > raid->max_stripes))
		return err_corrupt(err, "num_stripes", "%u stripes in a chunk with profile %s", c->num_stripes,
				   raid->name);
	if ((c->type & BG_RAID10) && c->sub_stripes != 2)
		return err_corrupt(err, "sub_stripes", "%u sub_stripes in a RAID10 chunk", c->sub_stripes);
	return 0;
}

static int chunk_check(const struct item_ctx *ctx, const struct chunk *c, struct btrkit_error *err)
{
	int ret = expect_aligned(ctx, "key.offset", c->logical, err);

	if (ret < 0)
		return ret;
	if (c->sector_size != ctx->sectorsize)
		return err_corrupt(err, "sector_size", "chunk's sector size is %" PRIu32 ", not %" PRIu32,
				   c->sector_size, ctx->sectorsize);
	if (!c->length || !sector_aligned(ctx, c->length) || c->length >= CHUNK_LENGTH_LIMIT ||
	    c->logical + c->length < c->logical)
		return err_corrupt(err, "length", "invalid chunk length %" PRIu64 " at %" PRIu64, c->length,
				   c->logical);
	if (c->stripe_len != CHUNK_STRIPE_LEN)
		return err_corrupt(err, "stripe_len", "chunk's stripe length is %" PRIu64 ", not 65536", c->stripe_len);
	ret = chunk_check_type(ctx, c->type, err);
	return ret < 0 ? ret : chunk_check_stripes(c, err);
}

static void chunk_get(const struct item *item, struct chunk *ret)
{
	const struct disk_chunk *d = (const struct disk_chunk *)item->data;

	*ret = (struct chunk){
		.logical = item->key.offset,
		.length = le64_get(d->length),
		.owner = le64_get(d->owner),
		.stripe_len = le64_get(d->stripe_len),
		.type = le64_get(d->type),
		.io_align = le32_get(d->io_align),
		.io_width = le32_get(d->io_width),
		.sector_size = le32_get(d->sector_size),
		.num_stripes = le16_get(d->num_stripes),
		.sub_stripes = le16_get(d->sub_stripes),
		.stripes = (const struct disk_stripe *)(item->data + sizeof(*d)),
	};
}

int chunk_decode(const struct item_ctx *ctx, const struct item *item, struct chunk *ret, struct btrkit_error *err)
{
	struct chunk c;
	int r;

	if (item->size < sizeof(struct disk_chunk))
		return expect_size(item, sizeof(struct disk_chunk), err);
	chunk_get(item, &c);
	r = expect_size(item, chunk_item_size(c.num_stripes), err);
	if (r < 0)
		return r;
	r = chunk_check(ctx, &c, err);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}

static int chunk_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct chunk c;

	return chunk_decode(ctx, item, &c, err);
}

static void stripe_render(struct emit *e, unsigned number, const struct disk_stripe *d)
{
	emit_object(e, NULL);
	if (e->form == EMIT_TEXT)
		emit_u64(e, "", "\t\t\tstripe ", number);
	emit_u64(e, "devid", " devid ", le64_get(d->devid));
	emit_u64(e, "offset", " offset ", le64_get(d->offset));
	emit_uuid(e, "dev_uuid", "\n\t\t\tdev_uuid ", d->dev_uuid);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void chunk_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct chunk c;
	size_t fits;

	(void)ctx;
	(void)flags;
	if (!render_struct(e, item, sizeof(struct disk_chunk)))
		return;
	chunk_get(item, &c);
	emit_u64(e, "length", "\t\tlength ", c.length);
	emit_u64(e, "owner", " owner ", c.owner);
	emit_u64(e, "stripe_len", " stripe_len ", c.stripe_len);
	bg_flags_emit(e, "type", " type ", c.type);
	bg_flags_names_emit(e, "type_names", c.type);
	emit_u64(e, "io_align", "\n\t\tio_align ", c.io_align);
	emit_u64(e, "io_width", " io_width ", c.io_width);
	emit_u64(e, "sector_size", " sector_size ", c.sector_size);
	emit_u64(e, "num_stripes", "\n\t\tnum_stripes ", c.num_stripes);
	emit_u64(e, "sub_stripes", " sub_stripes ", c.sub_stripes);
	emit_text(e, "\n");
	fits = (item->size - sizeof(struct disk_chunk)) / sizeof(struct disk_stripe);
	emit_array(e, "stripes");
	for (unsigned i = 0; i < c.num_stripes && i < fits; i++)
		stripe_render(e, i, &c.stripes[i]);
	emit_array_end(e);
	if (fits < c.num_stripes)
		render_damage(e, "num_stripes");
}

const struct item_type item_type_chunk = {
	.type = KEY_CHUNK_ITEM,
	.name = "CHUNK_ITEM",
	.min_size = sizeof(struct disk_chunk),
	.validate = chunk_validate,
	.render = chunk_render,
};
