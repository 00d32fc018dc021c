// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing data of a file, within one operation. */
#include "lib/modify/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/compression/encode.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/modify/xattr.h"

int write_check(const struct op *op, const struct op_inode *in, struct btrkit_error *err)
{
	const uint64_t flags = le64_get(in->item.flags);
	const uint32_t mode = op_inode_mode(in);
	int ret;

	if (S_ISDIR(mode))
		return err_system(err, EISDIR, "inode %" PRIu64, in->inode);
	if (!S_ISREG(mode))
		return err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a regular file", in->inode);
	if (flags & INODE_IMMUTABLE)
		return err_system(err, EPERM, "inode %" PRIu64 " is immutable", in->inode);
	ret = op_check_writable(op, err);
	if (!ret && flags & (INODE_APPEND | INODE_VERITY))
		ret = err_system(err, EPERM, "inode %" PRIu64 " %s", in->inode,
				 flags & INODE_APPEND ? "is append-only" : "is sealed by fs-verity");
	return ret;
}

int write_open_locked(struct writing *w, uint64_t inode, struct btrkit_error *err)
{
	static const struct btrkit_write_options none = BTRKIT_WRITE_OPTIONS_INIT;
	/* Data without checksums is not compressed, nor is a file with preallocated space, so that this gets used. */
	const uint64_t plain = INODE_NODATASUM | INODE_NODATACOW | INODE_NOCOMPRESS | INODE_PREALLOC;
	int ret;

	if (!w->opts)
		w->opts = &none;
	ret = op_inode_get(w->op, inode, &w->in, err);
	if (!ret)
		ret = write_check(w->op, &w->in, err);
	if (ret)
		return ret;
	w->compression = le64_get(w->in.item.flags) & plain ? COMPRESS_NONE : w->opts->compression;
	if (w->compression == COMPRESS_LZO || w->compression == COMPRESS_ZSTD)
		op_need_feature(w->op, w->compression == COMPRESS_LZO ? INCOMPAT_COMPRESS_LZO : INCOMPAT_COMPRESS_ZSTD);
	w->edges = malloc(2 * (size_t)w->op->txn->fs->geometry.sectorsize);
	return w->edges ? 0 : err_nomem(err);
}

int write_open(struct writing *w, uint64_t inode, struct btrkit_error *err)
{
	delayed_lock(w->op->t, &inode, 1, &w->op->locks);
	return write_open_locked(w, inode, err);
}

void write_close(struct writing *w)
{
	free(w->edges);
	w->edges = NULL;
}

int write_put_inode(struct writing *w, struct btrkit_error *err)
{
	const int ret = xattr_drop_capability(w->op, w->in.inode, err);

	w->in.item.mtime = w->in.item.ctime = w->op->now;
	return ret ? ret : op_inode_put(w->op, &w->in, err);
}

int write_end(struct writing *w, int ret, struct btrkit_error *err)
{
	int put;

	if (ret < 0 && ret != -ENOSPC)
		return ret;
	put = write_put_inode(w, ret < 0 ? NULL : err);
	return put ? put : ret;
}

int write_is_inline(struct writing *w, uint64_t *size, struct btrkit_error *err)
{
	struct extent_at x;
	int ret = extents_next(w->op, w->in.inode, 0, 1, &x, err);

	if (ret)
		return ret;
	*size = x.fe.ram_bytes;
	return x.fe.type != FILE_EXTENT_INLINE;
}

/* Prepares whole sectors for writing: the first and the last are completed with existing data. */
static int fill_bytes(struct writing *w, uint64_t offset, const uint8_t *data, size_t len, struct btrkit_error *err)
{
	const uint32_t sector = w->op->txn->fs->geometry.sectorsize;
	const uint64_t start = sector_down(w->op, offset), end = sector_up(w->op, offset + len), to = offset + len;
	struct store_bytes *b = &w->bytes;
	int ret = 0;

	*b = (struct store_bytes){ .start = start, .end = end };
	b->body_start = sector_up(w->op, offset);
	b->body_end = sector_down(w->op, to);
	if (offset > start || to < start + sector) {
		const size_t n = to < start + sector ? len : (size_t)(start + sector - offset);

		ret = data_read_sector(w->op, &w->in, start, w->edges, err);
		if (data)
			memcpy(w->edges + (offset - start), data, n);
		else
			memset(w->edges + (offset - start), 0, n);
		b->head = w->edges;
	}
	if (!ret && to < end && !(b->head && end == start + sector)) {
		ret = data_read_sector(w->op, &w->in, end - sector, w->edges + sector, err);
		memcpy(w->edges + sector, data + (end - sector - offset), (size_t)(to - (end - sector)));
		b->tail = w->edges + sector;
	}
	if (b->body_start < b->body_end)
		b->body = data + (b->body_start - offset);
	return ret;
}

static int drop(struct writing *w, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	uint64_t done;

	return extents_drop(w->op, &w->in, from, to, UINT32_MAX, &done, err);
}

/* Stores the file as an inline extent, if it is small. @return 0; 1: it is not small; <0 */
static int put_inline(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(w->in.inode, KEY_EXTENT_DATA, 0);
	const uint32_t sector = w->op->txn->fs->geometry.sectorsize, room = extents_inline_max(w->op);
	const uint32_t max = room < WRITE_INLINE_MAX ? room : WRITE_INLINE_MAX;
	struct disk_file_extent d = { .generation = le64_put(w->op->txn->generation),
				      .ram_bytes = le64_put(size),
				      .type = FILE_EXTENT_INLINE };
	uint8_t *plain, *packed;
	size_t len = (size_t)size;
	uint8_t *to;
	int ret = 1;

	if (w->bytes.start || size > sector || !size || le64_get(w->in.item.flags) & (INODE_NODATACOW | INODE_PREALLOC))
		return 1;
	plain = malloc(2 * (size_t)sector);
	if (!plain)
		return err_nomem(err);
	packed = plain + sector;
	store_bytes_copy(&w->bytes, sector, 0, sector, plain);
	if (w->compression) {
		struct encoder *e;

		ret = encoder_create(w->compression, w->opts->level, sector, &e, err);
		if (!ret) {
			ret = encoder_run(e, plain, len, packed, max < size - 1 ? max : (size_t)size - 1, &len, err);
			encoder_destroy(e);
		}
	}
	if (!ret) {
		d.compression = w->compression;
	} else if (ret == 1 && size <= max) {
		len = (size_t)size;
		ret = 0;
	}
	if (!ret)
		ret = drop(w, 0, sector, err);
	if (!ret)
		ret = delayed_insert(w->op->t, &key, NULL, FILE_EXTENT_INLINE_START + (uint32_t)len, &to, err);
	if (!ret) {
		memcpy(to, &d, FILE_EXTENT_INLINE_START);
		memcpy(to + FILE_EXTENT_INLINE_START, d.compression ? packed : plain, len);
		w->in.item.nbytes = le64_put(le64_get(w->in.item.nbytes) + size);
	}
	free(plain);
	return ret;
}

/* Stores the bytes. *@ret is NULL if the file is small, and is now inline. */
static int store_bytes(struct writing *w, uint64_t size, struct store **ret, struct btrkit_error *err)
{
	struct store *s;
	int r = w->bytes.end >= size ? put_inline(w, size, err) : 1;

	*ret = NULL;
	if (r != 1)
		return r;
	s = malloc(sizeof(*s));
	if (!s)
		return err_nomem(err);
	s->op = w->op;
	s->inode = w->in.inode;
	s->prealloc = le64_get(w->in.item.flags) & INODE_PREALLOC;
	s->bytes = &w->bytes;
	s->compression = w->compression;
	s->level = w->opts->level;
	s->sums = !(le64_get(w->in.item.flags) & INODE_NODATASUM);
	s->threads = w->opts->threads;
	w->stored = true;
	r = store_run(s, err);
	if (r)
		store_free(s);
	else
		*ret = s;
	return r;
}

/* Replaces the extents of the range by what was stored. */
static int put_stored(struct writing *w, uint64_t start, uint64_t end, struct store *s, struct btrkit_error *err)
{
	int ret = drop(w, start, end, err);

	for (unsigned i = 0; !ret && i < s->n; i++)
		ret = extents_put(w->op, &w->in, s->pieces[i].offset, &s->pieces[i].fe, err);
	return ret ? ret : store_add_sums(s, err);
}

int write_sector(struct writing *w, uint64_t offset, uint64_t size, struct btrkit_error *err)
{
	const uint64_t end = offset + w->op->txn->fs->geometry.sectorsize;
	const uint8_t compression = w->compression;
	struct store *s = NULL;
	int ret;

	w->bytes = (struct store_bytes){ .start = offset, .end = end, .head = w->edges };
	w->compression = COMPRESS_NONE;
	ret = store_bytes(w, size, &s, err);
	if (!ret && s)
		ret = put_stored(w, offset, end, s, err);
	store_free(s);
	w->compression = compression;
	return ret;
}

static int zero_edge(struct writing *w, uint64_t to, uint64_t size, struct btrkit_error *err)
{
	const uint64_t old = le64_get(w->in.item.size), edge = sector_up(w->op, old);
	const int ret = fill_bytes(w, old, NULL, (size_t)((to < edge ? to : edge) - old), err);

	return ret ? ret : write_sector(w, sector_down(w->op, old), size, err);
}

int write_extend(struct writing *w, uint64_t to, uint64_t size, struct btrkit_error *err)
{
	const uint64_t old = le64_get(w->in.item.size), edge = sector_up(w->op, old);
	const int ret = old < edge ? zero_edge(w, to, size, err) : 0;
	uint64_t done;

	return ret ? ret : extents_clear_behind(w->op, &w->in, edge, sector_up(w->op, to), 1, &done, err);
}

int write_check_extend(struct writing *w, uint64_t to, struct btrkit_error *err)
{
	const uint64_t edge = sector_up(w->op, le64_get(w->in.item.size)), end = sector_up(w->op, to);
	const int ret = edge < end ? extents_check_behind(w->op, w->in.inode, edge, end, err) : 0;

	return ret == 1 ? WRITE_CLEAR : ret;
}

int write_range(struct writing *w, uint64_t offset, const void *data, size_t len, uint64_t size,
		struct btrkit_error *err)
{
	const uint64_t old = le64_get(w->in.item.size), start = sector_down(w->op, offset);
	const uint64_t end = sector_up(w->op, offset + len);
	struct store *s = NULL;
	int ret;

	ret = fill_bytes(w, offset, data, len, err);
	if (!ret)
		ret = store_bytes(w, size, &s, err);
	/* Old extents between the end and @start must not appear. From here on there is enough space for everything. */
	if (!ret && start > old)
		ret = write_extend(w, start, size, err);
	if (!ret && s)
		ret = put_stored(w, start, end, s, err);
	store_free(s);
	if (!ret)
		w->in.item.size = le64_put(size);
	return ret;
}
