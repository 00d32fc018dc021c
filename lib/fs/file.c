// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is in a file: its extents, whatever their form, as one stretch of bytes. */
#include <btrkit/file.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/codec.h"
#include "lib/base/err.h"
#include "lib/format/items/file_extent.h"
#include "lib/fs/data.h"
#include "lib/fs/file.h"
#include "lib/fs/inode.h"
#include "lib/fs/subvolume.h"

/* Linux compresses at most 128 KiB to one extent; nobody makes one that is larger than this. */
#define COMPRESSED_MAX (1u << 20)

struct btrkit_file {
	struct btrkit_fs *fs;
	uint64_t inode, size;
	bool verify;
	struct cursor c;
	struct data_reader data;
	/* The part of an extent that was read for the sake of a few of its bytes: decompressed, or a sector. */
	uint8_t *plain;
	size_t plain_size;
	uint64_t plain_bytenr; /* address of what is in it; 0: nothing */
	size_t plain_len;
	bool plain_compressed;
};

struct btrkit_file *btrkit_file_close(struct btrkit_file *f)
{
	if (!f)
		return NULL;
	cursor_release(&f->c);
	data_reader_release(&f->data);
	free(f->plain);
	free(f);
	return NULL;
}

static int open_file(struct btrkit_file *f, struct btrkit_fs *fs, uint64_t root, uint64_t inode,
		     struct btrkit_error *err)
{
	struct subvolume s = { 0 };
	struct inode_item item;
	int ret;

	ret = subvolume_get(fs, root, &s, err);
	cursor_init(&f->c, fs, &s.root);
	if (!ret)
		ret = inode_read(&f->c, inode, &item, err);
	if (!ret && !S_ISREG(item.mode) && !S_ISLNK(item.mode))
		ret = err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is neither a file nor a symbolic link", inode);
	if (ret)
		return ret;
	f->fs = fs;
	f->inode = inode;
	f->size = item.size;
	f->verify = !(item.flags & INODE_NODATASUM);
	return data_reader_init(&f->data, fs, err);
}

int btrkit_file_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_file **ret,
		     struct btrkit_error *err)
{
	struct btrkit_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_nomem(err);
	r = open_file(f, fs, root, inode, err);
	if (r) {
		btrkit_file_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

static int make_plain(struct btrkit_file *f, size_t size, struct btrkit_error *err)
{
	uint8_t *more;

	f->plain_bytenr = 0;
	if (size <= f->plain_size)
		return 0;
	more = realloc(f->plain, size);
	if (!more)
		return err_nomem(err);
	f->plain = more;
	f->plain_size = size;
	return 0;
}

static int judge_compressed(const struct file_extent *fe, uint64_t stored, struct btrkit_error *err)
{
	if (stored > COMPRESSED_MAX || fe->ram_bytes > COMPRESSED_MAX)
		return err_corrupt(err, "ram_bytes", "compressed extent of %" PRIu64 " bytes, %" PRIu64 " on disk",
				   fe->ram_bytes, stored);
	return 0;
}

/* Has the whole of a compressed extent in f->plain. */
static int load_compressed(struct btrkit_file *f, const struct file_extent *fe, struct btrkit_error *err)
{
	uint8_t *stored;
	int ret;

	if (f->plain_compressed && f->plain_bytenr == fe->disk_bytenr && f->plain_len == fe->ram_bytes)
		return 0;
	ret = judge_compressed(fe, fe->disk_num_bytes, err);
	if (!ret)
		ret = make_plain(f, fe->ram_bytes, err);
	if (ret)
		return ret;
	stored = malloc(fe->disk_num_bytes);
	if (!stored)
		return err_nomem(err);
	ret = data_read(&f->data, fe->disk_bytenr, stored, fe->disk_num_bytes, f->verify, err);
	if (!ret)
		ret = codec_decompress(fe->compression, stored, fe->disk_num_bytes, f->plain, fe->ram_bytes,
				       f->fs->items.sectorsize, err);
	free(stored);
	if (ret)
		return ret;
	f->plain_bytenr = fe->disk_bytenr;
	f->plain_len = fe->ram_bytes;
	f->plain_compressed = true;
	return 0;
}

/* Has the sector at @logical in f->plain. */
static int load_sector(struct btrkit_file *f, uint64_t logical, struct btrkit_error *err)
{
	const uint32_t unit = f->fs->items.sectorsize;
	int ret;

	if (!f->plain_compressed && f->plain_bytenr == logical && f->plain_len == unit)
		return 0;
	ret = make_plain(f, unit, err);
	if (!ret)
		ret = data_read(&f->data, logical, f->plain, unit, f->verify, err);
	if (ret)
		return ret;
	f->plain_bytenr = logical;
	f->plain_len = unit;
	f->plain_compressed = false;
	return 0;
}

/* Bytes as they lie on disk: whole sectors to where they are wanted, the ends by way of f->plain. */
static int read_stored(struct btrkit_file *f, uint64_t logical, uint8_t *to, size_t len, struct btrkit_error *err)
{
	const uint32_t unit = f->fs->items.sectorsize;
	int ret = 0;

	while (!ret && len) {
		const size_t within = logical % unit;
		size_t n = len - len % unit;

		if (within || len < unit) {
			n = unit - within < len ? unit - within : len;
			ret = load_sector(f, logical - within, err);
			if (!ret)
				memcpy(to, f->plain + within, n);
		} else {
			ret = data_read(&f->data, logical, to, n, f->verify, err);
		}
		logical += n;
		to += n;
		len -= n;
	}
	return ret;
}

static int read_inline(struct btrkit_file *f, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		       struct btrkit_error *err)
{
	int ret;

	if (!fe->compression) {
		const size_t there = offset < fe->inline_len ? fe->inline_len - (size_t)offset : 0;
		const size_t n = there < len ? there : len;

		memcpy(to, fe->inline_data + offset, n);
		memset(to + n, 0, len - n);
		return 0;
	}
	ret = judge_compressed(fe, fe->inline_len, err);
	if (!ret)
		ret = make_plain(f, fe->ram_bytes, err);
	if (!ret)
		ret = codec_decompress(fe->compression, fe->inline_data, fe->inline_len, f->plain, fe->ram_bytes,
				       f->fs->items.sectorsize, err);
	if (!ret)
		memcpy(to, f->plain + offset, len);
	return ret;
}

/* @len bytes from @offset of what the extent item covers. */
static int read_extent(struct btrkit_file *f, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		       struct btrkit_error *err)
{
	int ret;

	if (fe->type == FILE_EXTENT_INLINE)
		return read_inline(f, fe, offset, to, len, err);
	if (fe->type == FILE_EXTENT_PREALLOC || !fe->disk_bytenr) {
		memset(to, 0, len);
		return 0;
	}
	if (!fe->compression) {
		if (fe->offset > fe->disk_num_bytes || fe->num_bytes > fe->disk_num_bytes - fe->offset)
			return err_corrupt(err, "num_bytes", "file extent ends behind its data");
		return read_stored(f, fe->disk_bytenr + fe->offset + offset, to, len, err);
	}
	ret = load_compressed(f, fe, err);
	if (ret)
		return ret;
	if (fe->offset > fe->ram_bytes || fe->num_bytes > fe->ram_bytes - fe->offset)
		return err_corrupt(err, "num_bytes", "file extent ends behind its data");
	memcpy(to, f->plain + fe->offset + offset, len);
	return 0;
}

static bool is_extent(const struct btrkit_file *f)
{
	return f->c.item.key.objectid == f->inode && f->c.item.key.type == KEY_EXTENT_DATA;
}

/*
 * The extent item that covers @at, if there is one; else @length gets how far it is to the next.
 * @return 0 f->c stands on it, and @length is what it still covers; 1 a hole; <0
 */
static int find_extent(struct btrkit_file *f, uint64_t at, struct file_extent *fe, uint64_t *length,
		       struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(f->inode, KEY_EXTENT_DATA, at);
	uint64_t covered;
	int ret;

	ret = cursor_seek_back(&f->c, &key, err);
	if (ret < 0)
		return ret;
	if (!ret && is_extent(f)) {
		ret = cursor_blame(&f->c, file_extent_decode(&f->fs->items, &f->c.item, fe, err), err);
		if (ret)
			return ret;
		covered = fe->type == FILE_EXTENT_INLINE ? fe->ram_bytes : fe->num_bytes;
		if (at - f->c.item.key.offset < covered) {
			*length = covered - (at - f->c.item.key.offset);
			return 0;
		}
	}
	ret = cursor_seek(&f->c, &key, err);
	if (ret < 0)
		return ret;
	*length = !ret && is_extent(f) ? f->c.item.key.offset - at : UINT64_MAX;
	if (!*length)
		return cursor_blame(&f->c, err_corrupt(err, "num_bytes", "file extent of no bytes"), err);
	return 1;
}

int file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *ret, struct btrkit_error *err)
{
	while (offset < f->size) {
		struct file_extent fe;
		uint64_t length = 0;
		int r = find_extent(f, offset, &fe, &length, err);

		if (r < 0)
			return r;
		if (!r && (fe.type == FILE_EXTENT_INLINE || (fe.type == FILE_EXTENT_REG && fe.disk_bytenr)))
			break;
		offset = length < f->size - offset ? offset + length : f->size;
	}
	*ret = offset < f->size ? offset : f->size;
	return 0;
}

int btrkit_file_read(struct btrkit_file *f, uint64_t offset, void *buf, size_t len, size_t *got,
		     struct btrkit_error *err)
{
	uint8_t *to = buf;
	size_t done = 0;

	if (offset >= f->size)
		len = 0;
	else if (len > f->size - offset)
		len = (size_t)(f->size - offset);
	while (done < len) {
		struct file_extent fe;
		uint64_t length = 0;
		size_t n;
		int ret = find_extent(f, offset + done, &fe, &length, err);

		if (ret < 0)
			return ret;
		n = length < len - done ? (size_t)length : len - done;
		if (ret)
			memset(to + done, 0, n);
		else
			ret = cursor_blame(&f->c, read_extent(f, &fe, offset + done - f->c.item.key.offset, to + done,
							      n, err), err);
		if (ret < 0)
			return ret;
		done += n;
	}
	*got = done;
	return 0;
}
