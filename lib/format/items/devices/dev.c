// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/dev.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

int dev_item_decode(const struct item *item, struct dev_item *ret, struct btrkit_error *err)
{
	const struct disk_dev_item *d = (const struct disk_dev_item *)item->data;
	struct dev_item dev;
	int r = expect_size(item, sizeof(*d), err);

	if (r < 0)
		return r;
	dev = (struct dev_item){
		.devid = le64_get(d->devid),
		.total_bytes = le64_get(d->total_bytes),
		.bytes_used = le64_get(d->bytes_used),
		.io_align = le32_get(d->io_align),
		.io_width = le32_get(d->io_width),
		.sector_size = le32_get(d->sector_size),
		.type = le64_get(d->type),
		.generation = le64_get(d->generation),
		.start_offset = le64_get(d->start_offset),
		.dev_group = le32_get(d->dev_group),
		.seek_speed = d->seek_speed,
		.bandwidth = d->bandwidth,
	};
	memcpy(dev.uuid, d->uuid, sizeof(dev.uuid));
	memcpy(dev.fsid, d->fsid, sizeof(dev.fsid));
	if (item->key.objectid != OID_DEV_ITEMS)
		return err_corrupt(err, "key.objectid", "device item has objectid %" PRIu64, item->key.objectid);
	if (dev.devid != item->key.offset)
		return err_corrupt(err, "devid", "item of device %" PRIu64 " has key offset %" PRIu64, dev.devid,
				   item->key.offset);
	/* A device that is being removed already has a size of 0, but also no used bytes. */
	if (dev.bytes_used > dev.total_bytes)
		return err_corrupt(err, "bytes_used", "device has %" PRIu64 " bytes used, size %" PRIu64,
				   dev.bytes_used, dev.total_bytes);
	*ret = dev;
	return 0;
}

static int dev_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct dev_item dev;

	(void)ctx;
	return dev_item_decode(item, &dev, err);
}

static void dev_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_dev_item *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "devid", "\t\tdevid ", le64_get(d->devid));
	emit_u64(e, "total_bytes", " total_bytes ", le64_get(d->total_bytes));
	emit_u64(e, "bytes_used", " bytes_used ", le64_get(d->bytes_used));
	emit_u64(e, "io_align", "\n\t\tio_align ", le32_get(d->io_align));
	emit_u64(e, "io_width", " io_width ", le32_get(d->io_width));
	emit_u64(e, "sector_size", " sector_size ", le32_get(d->sector_size));
	emit_u64(e, "type", " type ", le64_get(d->type));
	emit_u64(e, "generation", "\n\t\tgeneration ", le64_get(d->generation));
	emit_u64(e, "start_offset", " start_offset ", le64_get(d->start_offset));
	emit_u64(e, "dev_group", " dev_group ", le32_get(d->dev_group));
	emit_u64(e, "seek_speed", "\n\t\tseek_speed ", d->seek_speed);
	emit_u64(e, "bandwidth", " bandwidth ", d->bandwidth);
	emit_uuid(e, "uuid", "\n\t\tuuid ", d->uuid);
	emit_uuid(e, "fsid", "\n\t\tfsid ", d->fsid);
	emit_text(e, "\n");
}

int dev_extent_decode(const struct item_ctx *ctx, const struct item *item, struct dev_extent *ret,
		      struct btrkit_error *err)
{
	const struct disk_dev_extent *d = (const struct disk_dev_extent *)item->data;
	struct dev_extent de = { .devid = item->key.objectid, .physical = item->key.offset };
	int r;

	if (item->size < sizeof(*d))
		return expect_size(item, sizeof(*d), err);
	de.chunk_tree = le64_get(d->chunk_tree);
	de.chunk_objectid = le64_get(d->chunk_objectid);
	de.chunk_offset = le64_get(d->chunk_offset);
	de.length = le64_get(d->length);
	if (de.chunk_tree != OID_CHUNK_TREE)
		return err_corrupt(err, "chunk_tree", "device extent has chunk_tree %" PRIu64, de.chunk_tree);
	if (de.chunk_objectid != OID_FIRST_CHUNK_TREE)
		return err_corrupt(err, "chunk_objectid", "device extent has chunk_objectid %" PRIu64,
				   de.chunk_objectid);
	if ((r = expect_aligned(ctx, "key.offset", de.physical, err)) < 0 ||
	    (r = expect_aligned(ctx, "chunk_offset", de.chunk_offset, err)) < 0 ||
	    (r = expect_aligned(ctx, "length", de.length, err)) < 0)
		return r;
	*ret = de;
	return 0;
}

static int dev_extent_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct dev_extent de;

	return dev_extent_decode(ctx, item, &de, err);
}

static void dev_extent_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_dev_extent *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	emit_u64(e, "chunk_tree", "\t\tdev extent chunk_tree ", le64_get(d->chunk_tree));
	emit_u64(e, "chunk_objectid", "\n\t\tchunk_objectid ", le64_get(d->chunk_objectid));
	emit_u64(e, "chunk_offset", " chunk_offset ", le64_get(d->chunk_offset));
	emit_u64(e, "length", " length ", le64_get(d->length));
	emit_uuid(e, "chunk_tree_uuid", "\n\t\tchunk_tree_uuid ", d->chunk_tree_uuid);
	emit_text(e, "\n");
}

const struct item_type item_type_dev = {
	.type = KEY_DEV_ITEM,
	.name = "DEV_ITEM",
	.min_size = sizeof(struct disk_dev_item),
	.validate = dev_validate,
	.render = dev_render,
};

const struct item_type item_type_dev_extent = {
	.type = KEY_DEV_EXTENT,
	.name = "DEV_EXTENT",
	.min_size = sizeof(struct disk_dev_extent),
	.validate = dev_extent_validate,
	.render = dev_extent_render,
};
