// SPDX-License-Identifier: LGPL-2.1-or-later
/* File data that is written, cut off and taken out. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/encode.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/modify/data.h"
#include "lib/modify/xattr.h"

#define STEP (1u << 20)		/* bytes that one operation writes */
#define INLINE_MAX 2048u	/* bytes of a file that lie in its item, as Linux mounts by default */
#define ITEMS_AT_A_TIME 256u	/* that one operation takes away */

/* Whether data of an inode may be changed. @return 0; -EISDIR; -EINVAL; -EPERM */
static int judge_file(const struct op_inode *in, struct btrkit_error *err)
{
	const uint32_t mode = op_inode_mode(in);

	if (S_ISDIR(mode))
		return err_system(err, EISDIR, "inode %" PRIu64, in->inode);
	if (!S_ISREG(mode))
		return err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a regular file", in->inode);
	if (le64_get(in->item.flags) & (INODE_IMMUTABLE | INODE_APPEND | INODE_VERITY))
		return err_system(err, EPERM, "inode %" PRIu64 " is immutable, append-only or has a verity seal",
				  in->inode);
	return 0;
}

static void stamp(const struct op *op, struct op_inode *in)
{
	in->item.mtime = in->item.ctime = op->now;
}

/* What an operation writes: whole sectors, but for the end of what becomes inline. */
struct writing {
	struct op *op;
	struct op_inode in;
	const struct btrkit_write_options *opts;
	struct encoder *encoder; /* NULL: nothing is compressed */
	uint64_t start;		 /* in the file */
	uint8_t *data;
	size_t len;
	uint8_t *packed;
	bool sums;
};

static int put_extent(struct writing *w, const struct range *at, uint64_t offset, uint64_t ram, uint64_t num,
		      uint8_t compression, struct btrkit_error *err)
{
	const struct file_extent fe = { .generation = w->op->txn->generation,
					.ram_bytes = ram,
					.compression = compression,
					.type = FILE_EXTENT_REG,
					.disk_bytenr = at->start,
					.disk_num_bytes = at->length,
					.num_bytes = num };

	return extents_put(w->op, &w->in, offset, &fe, err);
}

/* As it is, in as many pieces as space is left in. */
static int write_plain(struct writing *w, size_t at, size_t len, struct btrkit_error *err)
{
	int ret = 0;

	while (!ret && len) {
		struct range r;

		ret = data_alloc(w->op, w->op->txn->fs->super.sectorsize, len, &r, err);
		if (!ret)
			ret = data_write(w->op, r.start, w->data + at, r.length, w->sums, err);
		if (!ret)
			ret = put_extent(w, &r, w->start + at, r.length, r.length, COMPRESS_NONE, err);
		if (ret)
			break;
		at += r.length;
		len -= r.length;
	}
	return ret;
}

/* @return 0; 1: it does not pay, or there is no room for it in one piece; <0 */
static int write_packed(struct writing *w, size_t at, size_t len, struct btrkit_error *err)
{
	const uint32_t sector = w->op->txn->fs->super.sectorsize;
	struct range r;
	size_t got, whole;
	int ret;

	if (!w->encoder || len <= sector)
		return 1;
	ret = encoder_run(w->encoder, w->data + at, len, w->packed, len - sector, &got, err);
	if (ret)
		return ret;
	whole = (size_t)sector_up(w->op, got);
	memset(w->packed + got, 0, whole - got);
	ret = data_alloc(w->op, whole, whole, &r, err);
	if (ret)
		return ret == -ENOSPC ? 1 : ret;
	ret = data_write(w->op, r.start, w->packed, whole, w->sums, err);
	return ret ? ret : put_extent(w, &r, w->start + at, len, len, w->opts->compression, err);
}

/* All of a small file, in its item. @return 0; 1: it is no small file; <0 */
static int write_inline(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(w->in.inode, KEY_EXTENT_DATA, 0);
	const uint32_t room = op_inline_max(w->op->txn), max = room < INLINE_MAX ? room : INLINE_MAX;
	struct disk_file_extent d = { .generation = le64_put(w->op->txn->generation),
				      .ram_bytes = le64_put(size),
				      .type = FILE_EXTENT_INLINE };
	const uint8_t *from = w->data;
	size_t len = (size_t)size;
	uint8_t *to;
	int ret = 1;

	if (w->start || size > w->op->txn->fs->super.sectorsize || !size)
		return 1;
	if (w->encoder) {
		ret = encoder_run(w->encoder, w->data, (size_t)size, w->packed, max < size - 1 ? max : (size_t)size - 1,
				  &len, err);
		if (ret < 0)
			return ret;
	}
	if (!ret) {
		from = w->packed;
		d.compression = w->opts->compression;
	} else if (size > max) {
		return 1;
	} else {
		len = (size_t)size;
	}
	ret = delayed_insert(w->op->t, &key, NULL, FILE_EXTENT_INLINE_START + (uint32_t)len, &to, err);
	if (ret)
		return ret;
	memcpy(to, &d, FILE_EXTENT_INLINE_START);
	memcpy(to + FILE_EXTENT_INLINE_START, from, len);
	w->in.item.nbytes = le64_put(le64_get(w->in.item.nbytes) + size);
	return 0;
}

static int write_extents(struct writing *w, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t at = 0; !ret && at < w->len; at += ENCODE_MAX) {
		const size_t len = w->len - at < ENCODE_MAX ? w->len - at : ENCODE_MAX;

		/* What is not compressed goes in one piece with what follows. */
		if (!w->encoder)
			return write_plain(w, at, w->len - at, err);
		ret = write_packed(w, at, len, err);
		if (ret == 1)
			ret = write_plain(w, at, len, err);
	}
	return ret;
}

/* The one extent of a small file lies in its item. @return 0 it does; 1 it does not; <0 */
static int is_inline(struct op *op, const struct op_inode *in, struct btrkit_error *err)
{
	struct extent_at x;
	int ret = extents_next(op, in->inode, 0, 1, &x, err);

	return ret ? ret : x.fe.type != FILE_EXTENT_INLINE;
}

/* Puts what is in w->data in the place of what the file has there; @size is that of the file then. */
static int put_data(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	uint64_t done;
	int ret;

	ret = extents_drop(w->op, &w->in, w->start, w->start + w->len, UINT32_MAX, &done, err);
	if (ret)
		return ret;
	ret = w->len >= size ? write_inline(w, size, err) : 1;
	return ret == 1 ? write_extents(w, err) : ret;
}

/* The sector that an inline extent stands for becomes one of its own. */
static int move_inline_out(struct writing *w, struct btrkit_error *err)
{
	const uint32_t sector = w->op->txn->fs->super.sectorsize;
	struct writing first = *w;
	int ret = is_inline(w->op, &w->in, err);

	if (ret)
		return ret < 0 ? ret : 0;
	first.start = 0;
	first.len = sector;
	first.encoder = NULL;
	first.data = malloc(sector);
	if (!first.data)
		return err_nomem(err);
	ret = data_read_sector(w->op, &w->in, 0, first.data, err);
	/* Of a file that is larger than a sector nothing is inline. */
	if (!ret)
		ret = put_data(&first, UINT64_MAX, err);
	free(first.data);
	w->in = first.in;
	return ret;
}

/* The bytes of whole sectors around @len bytes of @data at @offset. The caller frees w->data. */
static int fill_sectors(struct writing *w, uint64_t offset, const void *data, size_t len, struct btrkit_error *err)
{
	const uint32_t sector = w->op->txn->fs->super.sectorsize;
	const uint64_t end = sector_up(w->op, offset + len);
	int ret = 0;

	w->start = sector_down(w->op, offset);
	w->len = (size_t)(end - w->start);
	w->data = malloc(w->len);
	if (!w->data)
		return err_nomem(err);
	if (offset > w->start)
		ret = data_read_sector(w->op, &w->in, w->start, w->data, err);
	if (!ret && offset + len < end && (w->len > sector || offset == w->start))
		ret = data_read_sector(w->op, &w->in, end - sector, w->data + w->len - sector, err);
	if (data)
		memcpy(w->data + (offset - w->start), data, len);
	else
		memset(w->data + (offset - w->start), 0, len);
	return ret;
}

static int write_step(struct writing *w, uint64_t offset, const void *data, size_t len, uint64_t size,
		      struct btrkit_error *err)
{
	const uint64_t old = le64_get(w->in.item.size);
	int ret = 0;

	/* What lies in the item stays there only if all of the file is written. */
	if (sector_down(w->op, offset))
		ret = move_inline_out(w, err);
	if (!ret)
		ret = fill_sectors(w, offset, data, len, err);
	if (!ret && w->start > sector_up(w->op, old))
		ret = extents_put_hole(w->op, &w->in, sector_up(w->op, old), w->start, err);
	if (!ret)
		ret = put_data(w, size, err);
	free(w->data);
	if (ret)
		return ret;
	w->in.item.size = le64_put(size);
	stamp(w->op, &w->in);
	return op_inode_put(w->op, &w->in, err);
}

static int open_writing(struct writing *w, uint64_t inode, struct btrkit_error *err)
{
	const struct btrkit_write_options *opts = w->opts;
	uint64_t flags;
	int ret;

	delayed_lock(w->op->t, &inode, 1, &w->op->locks);
	ret = op_inode_get(w->op, inode, &w->in, err);
	if (!ret)
		ret = judge_file(&w->in, err);
	if (ret)
		return ret;
	flags = le64_get(w->in.item.flags);
	w->sums = !(flags & INODE_NODATASUM);
	/* What has no checksums is not compressed either. */
	if (!opts->compression || flags & (INODE_NODATASUM | INODE_NODATACOW | INODE_NOCOMPRESS))
		return 0;
	ret = encoder_create(opts->compression, opts->level, w->op->txn->fs->super.sectorsize, &w->encoder, err);
	if (ret)
		return ret;
	if (opts->compression == COMPRESS_LZO || opts->compression == COMPRESS_ZSTD)
		op_need_feature(w->op, opts->compression == COMPRESS_LZO ? INCOMPAT_COMPRESS_LZO :
									   INCOMPAT_COMPRESS_ZSTD);
	w->packed = malloc(ENCODE_MAX);
	return w->packed ? 0 : err_nomem(err);
}

/* What one step of writing may change. */
static struct ticket_need need_of_step(const struct btrkit_txn *txn, size_t len)
{
	const uint32_t sector = txn->fs->super.sectorsize, sectors = (uint32_t)(len / sector) + 2;
	const uint32_t item = sizeof(struct disk_item) + sizeof(struct disk_file_extent);

	/*
	 * Each sector may have been an extent, and may become one; each has a checksum. And what the file was capable
	 * of goes.
	 */
	return (struct ticket_need){
		.items = 2 * sectors + 5,
		.bytes = sectors * (2 * item + txn->fs->judge.csum->size) + INLINE_MAX + 4 * item,
	};
}

static int write_piece(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		       size_t len, const struct btrkit_write_options *opts, struct btrkit_error *err)
{
	const struct ticket_need need = need_of_step(txn, len);
	struct op op;
	struct writing w = { .op = &op, .opts = opts };
	uint64_t size = 0;
	int ret;

	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = open_writing(&w, inode, err);
	if (!ret) {
		size = le64_get(w.in.item.size);
		ret = xattr_drop_capability(&op, inode, err);
	}
	if (!ret)
		ret = write_step(&w, offset, data, len, size > offset + len ? size : offset + len, err);
	encoder_destroy(w.encoder);
	free(w.packed);
	return op_end(&op, ret);
}

int btrkit_write(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data, size_t len,
		 const struct btrkit_write_options *opts, struct btrkit_error *err)
{
	static const struct btrkit_write_options none = BTRKIT_WRITE_OPTIONS_INIT;
	const uint8_t *from = data;
	int ret = 0;

	if (len > INT64_MAX || offset > INT64_MAX - len)
		return err_system(err, EFBIG, "a file of more than 8 EiB");
	while (!ret && len) {
		/* Pieces end where one that is compressed would. */
		const size_t room = STEP - (size_t)(offset % ENCODE_MAX), n = len < room ? len : room;

		ret = write_piece(txn, root, inode, offset, from, n, opts ? opts : &none, err);
		from += n;
		offset += n;
		len -= n;
	}
	return ret;
}

/* Takes away what the file has from @from to @to, as often as needed. */
static int drop_range(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t from, uint64_t to,
		      struct btrkit_error *err)
{
	const struct ticket_need need = { .items = 2 * ITEMS_AT_A_TIME + 2, .bytes = 4096, .removes = true };
	int ret = 0;

	while (!ret && from < to) {
		struct op_inode in;
		uint64_t done = 0;
		struct op op;

		ret = op_begin(&op, txn, root, &need, err);
		if (ret)
			return ret;
		delayed_lock(op.t, &inode, 1, &op.locks);
		ret = op_inode_get(&op, inode, &in, err);
		if (!ret)
			ret = extents_drop(&op, &in, from, to, ITEMS_AT_A_TIME, &done, err);
		if (!ret)
			ret = extents_put_hole(&op, &in, from, done < sector_up(&op, le64_get(in.item.size)) ?
					       done : sector_up(&op, le64_get(in.item.size)), err);
		if (!ret)
			ret = op_inode_put(&op, &in, err);
		from = done;
		ret = op_end(&op, ret);
	}
	return ret;
}

/* Another size, and what follows from it in the sector of the end. */
static int resize(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	const uint32_t sector = w->op->txn->fs->super.sectorsize;
	const uint64_t old = le64_get(w->in.item.size), edge = size < old ? size : old;
	const uint32_t rest = (uint32_t)(edge % sector);
	int ret = is_inline(w->op, &w->in, err);

	if (ret < 0)
		return ret;
	if (!ret && size) {
		/* The sector is written anew, inline again if it still may be. */
		ret = fill_sectors(w, edge, NULL, sector - rest, err);
		w->start = 0;
		w->len = sector;
		if (!ret)
			ret = put_data(w, size, err);
		if (!ret)
			ret = extents_put_hole(w->op, &w->in, sector, sector_up(w->op, size), err);
		free(w->data);
	} else if (size < old && rest) {
		/* Behind its end a file has zeros, in case it grows again. */
		ret = fill_sectors(w, size, NULL, sector - rest, err);
		if (!ret)
			ret = put_data(w, UINT64_MAX, err);
		free(w->data);
	} else if (size > old) {
		ret = extents_put_hole(w->op, &w->in, sector_up(w->op, old), sector_up(w->op, size), err);
	} else {
		ret = 0;
	}
	if (ret)
		return ret;
	w->in.item.size = le64_put(size);
	stamp(w->op, &w->in);
	return op_inode_put(w->op, &w->in, err);
}

int btrkit_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	static const struct btrkit_write_options none = BTRKIT_WRITE_OPTIONS_INIT;
	const struct ticket_need need = need_of_step(txn, 1);
	struct op op;
	struct writing w = { .op = &op, .opts = &none };
	uint64_t old = 0;
	int ret;

	if (size > INT64_MAX)
		return err_system(err, EFBIG, "a file of more than 8 EiB");
	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = open_writing(&w, inode, err);
	if (!ret) {
		old = le64_get(w.in.item.size);
		ret = xattr_drop_capability(&op, inode, err);
	}
	if (!ret)
		ret = resize(&w, size, err);
	ret = op_end(&op, ret);
	/* Also what was kept free behind the end. */
	return ret || size > old ? ret : drop_range(txn, root, inode, sector_up(&op, size), UINT64_MAX - 4095, err);
}
