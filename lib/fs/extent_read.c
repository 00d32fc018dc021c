// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/extent_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/compression/codec.h"
#include "lib/base/err.h"
#include "lib/io/buffer.h"

int extent_reader_init(struct extent_reader *r, struct btrkit_fs *fs, bool verify, struct btrkit_error *err)
{
	*r = (struct extent_reader){ .fs = fs, .verify = verify };
	return data_reader_init(&r->data, fs, err);
}

void extent_reader_release(struct extent_reader *r)
{
	data_reader_release(&r->data);
	free(r->plain);
	*r = (struct extent_reader){ 0 };
}

static int make_plain(struct extent_reader *r, size_t size, struct btrkit_error *err)
{
	uint8_t *more;

	r->plain_bytenr = 0;
	if (size <= r->plain_size)
		return 0;
	more = realloc(r->plain, size);
	if (!more)
		return err_nomem(err);
	r->plain = more;
	r->plain_size = size;
	return 0;
}

static int check_compressed(const struct file_extent *fe, uint64_t stored, struct btrkit_error *err)
{
	if (stored > EXTENT_COMPRESSED_MAX || fe->ram_bytes > EXTENT_COMPRESSED_MAX || !fe->ram_bytes)
		return err_corrupt(err, "ram_bytes", "compressed extent of %" PRIu64 " bytes, %" PRIu64 " on disk",
				   fe->ram_bytes, stored);
	return 0;
}

/* Loads a whole compressed extent into r->plain, unless it is there already. */
static int load_compressed(struct extent_reader *r, const struct file_extent *fe, struct btrkit_error *err)
{
	uint8_t *stored;
	int ret;

	if (r->plain_compressed && r->plain_bytenr == fe->disk_bytenr && r->plain_len == fe->ram_bytes)
		return 0;
	ret = check_compressed(fe, fe->disk_num_bytes, err);
	if (!ret)
		ret = make_plain(r, fe->ram_bytes, err);
	if (ret)
		return ret;
	stored = io_buffer(fe->disk_num_bytes);
	if (!stored)
		return err_nomem(err);
	ret = data_read(&r->data, fe->disk_bytenr, stored, fe->disk_num_bytes, r->verify, err);
	if (!ret)
		ret = codec_decompress(fe->compression, stored, fe->disk_num_bytes, r->plain, fe->ram_bytes,
				       r->fs->geometry.sectorsize, err);
	free(stored);
	if (ret)
		return ret;
	r->plain_bytenr = fe->disk_bytenr;
	r->plain_len = fe->ram_bytes;
	r->plain_compressed = true;
	return 0;
}

/* Loads the sector at @logical into r->plain, unless it is there already. */
static int load_sector(struct extent_reader *r, uint64_t logical, struct btrkit_error *err)
{
	const uint32_t unit = r->fs->geometry.sectorsize;
	int ret;

	if (!r->plain_compressed && r->plain_bytenr == logical && r->plain_len == unit)
		return 0;
	ret = make_plain(r, unit, err);
	if (!ret)
		ret = data_read(&r->data, logical, r->plain, unit, r->verify, err);
	if (ret)
		return ret;
	r->plain_bytenr = logical;
	r->plain_len = unit;
	r->plain_compressed = false;
	return 0;
}

/* Reads uncompressed bytes: full sectors directly to their destination, partial ones at the ends via r->plain. */
static int read_stored(struct extent_reader *r, uint64_t logical, uint8_t *to, size_t len, struct btrkit_error *err)
{
	const uint32_t unit = r->fs->geometry.sectorsize;
	int ret = 0;

	while (!ret && len) {
		const size_t within = logical % unit;
		size_t n = len - len % unit;

		if (within || len < unit) {
			n = unit - within < len ? unit - within : len;
			ret = load_sector(r, logical - within, err);
			if (!ret)
				memcpy(to, r->plain + within, n);
		} else {
			ret = data_read(&r->data, logical, to, n, r->verify, err);
		}
		logical += n;
		to += n;
		len -= n;
	}
	return ret;
}

static int read_inline(struct extent_reader *r, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		       struct btrkit_error *err)
{
	int ret;

	if (!fe->compression) {
		const size_t there = offset < fe->inline_len ? fe->inline_len - (size_t)offset : 0;
		const size_t n = there < len ? there : len;

		/* The item may contain fewer bytes than its length in the file; the rest is zeros. */
		if (n)
			memcpy(to, fe->inline_data + offset, n);
		memset(to + n, 0, len - n);
		return 0;
	}
	ret = check_compressed(fe, fe->inline_len, err);
	if (!ret)
		ret = make_plain(r, fe->ram_bytes, err);
	if (!ret)
		ret = codec_decompress_inline(fe->compression, fe->inline_data, fe->inline_len, r->plain,
					      fe->ram_bytes, r->fs->geometry.sectorsize, err);
	if (!ret)
		memcpy(to, r->plain + offset, len);
	return ret;
}

int extent_read(struct extent_reader *r, const struct file_extent *fe, uint64_t offset, uint8_t *to, size_t len,
		struct btrkit_error *err)
{
	int ret;

	if (fe->type == FILE_EXTENT_INLINE)
		return read_inline(r, fe, offset, to, len, err);
	if (fe->type == FILE_EXTENT_PREALLOC || !fe->disk_bytenr) {
		memset(to, 0, len);
		return 0;
	}
	if (!fe->compression) {
		if (fe->offset > fe->disk_num_bytes || fe->num_bytes > fe->disk_num_bytes - fe->offset)
			return err_corrupt(err, "num_bytes", "file extent ends past its data");
		return read_stored(r, fe->disk_bytenr + fe->offset + offset, to, len, err);
	}
	ret = load_compressed(r, fe, err);
	if (ret)
		return ret;
	if (fe->offset > fe->ram_bytes || fe->num_bytes > fe->ram_bytes - fe->offset)
		return err_corrupt(err, "num_bytes", "file extent ends past its data");
	memcpy(to, r->plain + fe->offset + offset, len);
	return 0;
}
