// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/csum.h"

#include "lib/base/csum.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int csum_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	if (item->key.objectid != OID_EXTENT_CSUM)
		return err_corrupt(err, "key.objectid", "checksum item has objectid %" PRIu64, item->key.objectid);
	if (item->size % ctx->csum_size)
		return err_corrupt(err, "item_size", "checksum item has invalid size %" PRIu32, item->size);
	return expect_aligned(ctx, "key.offset", item->key.offset, err);
}

/* Prints checksums of 16 bytes in total per line, at least one per line. */
static void csums_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, uint32_t count)
{
	const uint32_t in_line = 2 * ctx->csum_size < CSUM_SIZE_MAX ? CSUM_SIZE_MAX / 2 / ctx->csum_size : 1;
	uint64_t logical = item->key.offset;

	emit_array(e, "csums");
	for (uint32_t i = 0; i < count && !emit_failed(e); i++) {
		if (e->form == EMIT_TEXT) {
			if (i % in_line)
				emit_text(e, " [");
			else
				emit_text(e, i ? "\n\t\t[" : "\t\t[");
			emit_u64(e, "", "", logical);
		}
		emit_hex(e, NULL, "] 0x", item->data + (size_t)i * ctx->csum_size, ctx->csum_size);
		logical += ctx->sectorsize;
	}
	emit_array_end(e);
	emit_text(e, "\n");
}

static void csum_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const uint32_t count = item->size / ctx->csum_size;
	/* dump-tree uses 32 bits, but no leaf has checksums for 4G. */
	const uint64_t length = (uint64_t)count * ctx->sectorsize;

	emit_u64(e, "start", "\t\trange start ", item->key.offset);
	emit_u64(e, "end", " end ", item->key.offset + length);
	emit_u64(e, "length", " length ", length);
	emit_text(e, "\n");
	if (flags & RENDER_CSUM_ITEMS)
		csums_render(e, ctx, item, count);
	if (item->size % ctx->csum_size)
		render_damage(e, "item_size");
}

const struct item_type item_type_csum = {
	.type = KEY_EXTENT_CSUM,
	.name = "EXTENT_CSUM",
	.validate = csum_validate,
	.render = csum_render,
};
