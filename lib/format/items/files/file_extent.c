// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/file_extent.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int inline_decode(const struct item *item, struct file_extent *ret, struct btrkit_error *err)
{
	const struct disk_file_extent *d = (const struct disk_file_extent *)item->data;
	const uint64_t ram_bytes = le64_get(d->ram_bytes);
	const uint32_t len = item->size - FILE_EXTENT_INLINE_START;

	if (item->key.offset)
		return err_corrupt(err, "key.offset", "inline extent at file offset %" PRIu64, item->key.offset);
	if (d->compression == COMPRESS_NONE && len != ram_bytes)
		return err_corrupt(err, "ram_bytes", "inline extent of %" PRIu32 " bytes has ram_bytes %" PRIu64, len,
				   ram_bytes);
	*ret = (struct file_extent){
		.generation = le64_get(d->generation),
		.ram_bytes = ram_bytes,
		.compression = d->compression,
		.type = d->type,
		.inline_data = item->data + FILE_EXTENT_INLINE_START,
		.inline_len = len,
	};
	return 0;
}

static int regular_decode(const struct item_ctx *ctx, const struct item *item, struct file_extent *ret,
			  struct btrkit_error *err)
{
	const struct disk_file_extent *d = (const struct disk_file_extent *)item->data;
	uint64_t num_bytes;
	int r = expect_size(item, sizeof(*d), err);

	if (r < 0)
		return r;
	num_bytes = le64_get(d->num_bytes);
	if ((r = expect_aligned(ctx, "ram_bytes", le64_get(d->ram_bytes), err)) < 0 ||
	    (r = expect_aligned(ctx, "disk_bytenr", le64_get(d->disk_bytenr), err)) < 0 ||
	    (r = expect_aligned(ctx, "disk_num_bytes", le64_get(d->disk_num_bytes), err)) < 0 ||
	    (r = expect_aligned(ctx, "offset", le64_get(d->offset), err)) < 0 ||
	    (r = expect_aligned(ctx, "num_bytes", num_bytes, err)) < 0)
		return r;
	if (item->key.offset + num_bytes < num_bytes)
		return err_corrupt(err, "num_bytes",
				   "file extent of %" PRIu64 " bytes at offset %" PRIu64 " is too long", num_bytes,
				   item->key.offset);
	/*
	 * Assigning single fields is faster: a copy of the whole struct would have to wait for the byte-sized stores.
	 */
	*ret = (struct file_extent){
		.generation = le64_get(d->generation),
		.ram_bytes = le64_get(d->ram_bytes),
		.compression = d->compression,
		.type = d->type,
		.other_encoding = le16_get(d->other_encoding),
		.disk_bytenr = le64_get(d->disk_bytenr),
		.disk_num_bytes = le64_get(d->disk_num_bytes),
		.offset = le64_get(d->offset),
		.num_bytes = num_bytes,
	};
	return 0;
}

int file_extent_decode(const struct item_ctx *ctx, const struct item *item, struct file_extent *ret,
		       struct btrkit_error *err)
{
	const struct disk_file_extent *d = (const struct disk_file_extent *)item->data;
	int r;

	if (item->size < FILE_EXTENT_INLINE_START)
		return err_corrupt(err, "item_size", "file extent item is too short: %" PRIu32 " bytes", item->size);
	r = expect_aligned(ctx, "key.offset", item->key.offset, err);
	if (r < 0)
		return r;
	if (d->type > FILE_EXTENT_PREALLOC)
		return err_corrupt(err, "type", "file extent has unknown type %u", d->type);
	if (d->compression > COMPRESS_ZSTD)
		return err_corrupt(err, "compression", "file extent has unknown compression %u", d->compression);
	if (d->encryption)
		return err_corrupt(err, "encryption", "file extent has unknown encryption %u", d->encryption);
	if (d->type == FILE_EXTENT_INLINE)
		return inline_decode(item, ret, err);
	return regular_decode(ctx, item, ret, err);
}

static int file_extent_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct file_extent fe;

	return file_extent_decode(ctx, item, &fe, err);
}

/* Renders the compression after @words, and in text also the encryption, which btrfs-progs 6.19 does not print. */
static void encoding_render(struct emit *e, const char *words, const char *encryption,
			    const struct disk_file_extent *d, unsigned flags)
{
	static const char *const words_of[] = { " (none)", " (zlib)", " (lzo)", " (zstd)" };
	static const char *const names[] = { "none", "zlib", "lzo", "zstd" };
	const uint8_t compression = d->compression;

	emit_u64(e, "compression", words, compression);
	if (e->form == EMIT_JSON && compression <= COMPRESS_ZSTD)
		emit_word(e, "compression_name", names[compression]);
	if (compression <= COMPRESS_ZSTD)
		emit_text(e, words_of[compression]);
	else
		emit_textf(e, " (UNKNOWN.%u)", compression);
	if (e->form == EMIT_TEXT && !(flags & RENDER_COMPAT_6_19))
		emit_u64(e, "", encryption, d->encryption);
	emit_text(e, "\n");
}

static void regular_render(struct emit *e, const struct disk_file_extent *d, unsigned flags)
{
	const bool prealloc = d->type == FILE_EXTENT_PREALLOC;

	emit_u64(e, "disk_bytenr", prealloc ? "\t\tprealloc data disk byte " : "\t\textent data disk byte ",
		 le64_get(d->disk_bytenr));
	emit_u64(e, "disk_num_bytes", " nr ", le64_get(d->disk_num_bytes));
	emit_u64(e, "offset", prealloc ? "\n\t\tprealloc data offset " : "\n\t\textent data offset ",
		 le64_get(d->offset));
	emit_u64(e, "num_bytes", " nr ", le64_get(d->num_bytes));
	if (prealloc && e->form == EMIT_TEXT) {
		emit_text(e, "\n");
		return;
	}
	emit_u64(e, "ram_bytes", " ram ", le64_get(d->ram_bytes));
	encoding_render(e, "\n\t\textent compression ", "\n\t\textent encryption ", d, flags);
}

static void file_extent_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	static const char *const names[] = { "inline", "regular", "prealloc" };
	static const char *const types[] = { " (inline)\n", " (regular)\n", " (prealloc)\n" };
	const struct disk_file_extent *d = render_struct(e, item, FILE_EXTENT_INLINE_START);

	(void)ctx;
	if (!d)
		return;
	emit_u64(e, "generation", "\t\tgeneration ", le64_get(d->generation));
	emit_u64(e, "type", " type ", d->type);
	emit_text(e, d->type <= FILE_EXTENT_PREALLOC ? types[d->type] : " (unknown)\n");
	if (e->form == EMIT_JSON && d->type <= FILE_EXTENT_PREALLOC)
		emit_word(e, "type_name", names[d->type]);
	if (e->form == EMIT_JSON) {
		emit_u64(e, "encryption", "", d->encryption);
		emit_u64(e, "other_encoding", "", le16_get(d->other_encoding));
	}
	if (d->type == FILE_EXTENT_INLINE) {
		emit_u64(e, "inline_size", "\t\tinline extent data size ", item->size - FILE_EXTENT_INLINE_START);
		emit_u64(e, "ram_bytes", " ram_bytes ", le64_get(d->ram_bytes));
		encoding_render(e, " compression ", " encryption ", d, flags);
		render_data(e, "inline_data", item->data + FILE_EXTENT_INLINE_START,
			    item->size - FILE_EXTENT_INLINE_START, flags);
	} else if (render_struct(e, item, sizeof(*d))) {
		regular_render(e, d, flags);
	}
}

const struct item_type item_type_extent_data = {
	.type = KEY_EXTENT_DATA,
	.name = "EXTENT_DATA",
	.min_size = FILE_EXTENT_INLINE_START,
	.validate = file_extent_validate,
	.render = file_extent_render,
};
