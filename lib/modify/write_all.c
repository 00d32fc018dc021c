// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing file data of any length, one operation per piece. */
#include "lib/modify/write.h"

#include <errno.h>

#include "lib/base/compression/encode.h"
#include "lib/base/err.h"

struct ticket_need write_need(const struct btrkit_txn *txn, uint64_t len)
{
	const uint64_t sectors = len / txn->fs->geometry.sectorsize + 2;
	/* Each sector may replace an extent and become one, and each has a checksum. The capability is removed. */
	const uint32_t extents = sectors < WRITE_ITEMS ? (uint32_t)sectors : WRITE_ITEMS;
	const uint32_t item = sizeof(struct disk_item) + sizeof(struct disk_file_extent);

	return (struct ticket_need){
		.items = 3 * extents + 7,
		.bytes = (3 * extents + 6) * item + (uint32_t)sectors * txn->fs->geometry.csum->size + WRITE_INLINE_MAX,
	};
}

/* Limits *@len so that at most WRITE_ITEMS extents are replaced. */
static int verify_span(struct writing *w, uint64_t offset, size_t *len, struct btrkit_error *err)
{
	uint64_t at = offset;
	struct extent_at x;

	if (*len / w->op->txn->fs->geometry.sectorsize < WRITE_ITEMS - 2)
		return 0;
	for (unsigned n = 0; n < WRITE_ITEMS; n++, at = x.end) {
		const int ret = extents_next(w->op, w->in.inode, at, offset + *len, &x, err);

		if (ret)
			return ret < 0 ? ret : 0;
		if (x.end >= offset + *len)
			return 0;
	}
	*len = (size_t)(at - offset);
	return 0;
}

/* @len: what to write, and what was written. @return 0; WRITE_CLEAR; <0 */
static int write_step(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		      size_t *len, const struct btrkit_write_options *opts, struct btrkit_error *err)
{
	const struct ticket_need need = write_need(txn, *len);
	struct op op;
	struct writing w = { .op = &op, .opts = opts };
	uint64_t size = 0;
	int ret;

	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	if (!ret)
		ret = verify_span(&w, offset, len, err);
	if (!ret)
		ret = write_check_extend(&w, sector_down(&op, offset), err);
	if (!ret) {
		size = le64_get(w.in.item.size);
		size = size > offset + *len ? size : offset + *len;
		ret = write_range(&w, offset, data, *len, size, err);
	}
	if (!ret)
		ret = write_put_inode(&w, err);
	/* An inline extent replaces an inline extent, so little was used. */
	if (!ret && !w.stored)
		op_spare(&op, &need, sizeof(struct disk_item) + sizeof(struct disk_file_extent) + (uint32_t)size);
	write_close(&w);
	return op_end(&op, ret, err);
}

/* Writing zero bytes fails if the file cannot be written. */
static int check_only(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	struct op op;
	struct writing w = { .op = &op };
	int ret = op_begin_reading(&op, txn, root, err);

	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	write_close(&w);
	return op_end(&op, ret, err);
}

static int write_all(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		     size_t len, const struct btrkit_write_options *opts, struct btrkit_error *err)
{
	const uint64_t span = store_span(opts ? opts->compression : COMPRESS_NONE);
	const uint8_t *from = data;
	bool tried = false;
	int ret = 0;

	if (opts && opts->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", opts->flags);
	if (opts && opts->level && !opts->compression)
		return err_set(err, BTRKIT_INVALID, "compression level %d without compression", opts->level);
	if (offset > INT64_MAX || len > INT64_MAX - offset)
		return err_system(err, EFBIG, "file larger than 8 EiB");
	if (!len)
		return check_only(txn, root, inode, err);
	while (!ret && len) {
		/* End pieces where a compressed extent would end. */
		const uint64_t room = span - offset % ENCODE_MAX;
		size_t n = len < room ? len : (size_t)room;

		ret = write_step(txn, root, inode, offset, from, &n, opts, err);
		if (ret == WRITE_CLEAR) {
			ret = write_clear(txn, root, inode, offset, err);
			if (!ret)
				continue;
		}
		if (ret) {
			ret = op_again(txn, &tried, ret, err);
			continue;
		}
		tried = false;
		from += n;
		offset += n;
		len -= n;
	}
	return ret;
}

int btrkit_txn_write(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		     size_t len, const struct btrkit_write_options *opts, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, write_all(txn, root, inode, offset, data, len, opts, &own));
}
