// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes of the size of a file. */
#include "lib/modify/write.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"

/* File extents that one operation cuts off. Its reservation must be available on a nearly full filesystem as well. */
#define CUT_ITEMS 32u

/* Extents dropped and holes inserted past the end of a growing file by one operation. */
#define CLEAR_ITEMS 32u

/* Takes the place of CUT_ITEMS if space is short. */
#define FEW_ITEMS 2u

/* Removes up to @max extents starting at *@from, and advances it. */
static int drop_step(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned max, uint64_t *from, uint64_t to,
		     struct btrkit_error *err)
{
	const struct ticket_need need = { .items = 2 * max + 4, .bytes = max < WRITE_ITEMS ? 512 : 4096,
					  .removes = true };
	uint64_t done = 0, end;
	struct op_inode in;
	struct op op;
	int ret = op_begin(&op, txn, root, &need, err);

	if (ret)
		return ret;
	delayed_lock(op.t, &inode, 1, &op.locks);
	ret = op_inode_get(&op, inode, &in, err);
	if (!ret)
		ret = op_check_writable(&op, err);
	if (!ret)
		ret = extents_drop(&op, &in, *from, to, max, &done, err);
	if (!ret) {
		end = sector_up(&op, le64_get(in.item.size));
		ret = extents_put_hole(&op, &in, *from, done < end ? done : end, err);
	}
	if (!ret)
		ret = op_inode_put(&op, &in, err);
	if (!ret)
		*from = done;
	return op_end(&op, ret, err);
}

int write_drop(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t from, uint64_t to,
	       struct btrkit_error *err)
{
	unsigned max = WRITE_ITEMS;
	int ret = 0;

	while (!ret && from < to)
		ret = op_try_fewer(txn, drop_step(txn, root, inode, max, &from, to, err), &max, FEW_ITEMS);
	return ret;
}

/* Shortens an inline extent in place, regardless of the inode's flags. @return 0; 1: it is compressed; <0 */
static int cut_inline(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(w->in.inode, KEY_EXTENT_DATA, 0);
	const uint32_t sector = w->op->txn->fs->geometry.sectorsize;
	const uint32_t len = FILE_EXTENT_INLINE_START + (uint32_t)size;
	struct disk_file_extent d;
	struct extent_at x;
	uint64_t done;
	uint8_t *to;
	int ret;

	ret = extents_next(w->op, w->in.inode, 0, 1, &x, err);
	if (ret || x.fe.compression || size > sector || x.item.size < len)
		return ret < 0 ? ret : 1;
	memcpy(w->edges, x.item.data, len);
	ret = extents_drop(w->op, &w->in, 0, sector, UINT32_MAX, &done, err);
	if (!ret)
		ret = delayed_insert(w->op->t, &key, NULL, len, &to, err);
	if (ret)
		return ret;
	memcpy(&d, w->edges, FILE_EXTENT_INLINE_START);
	d.ram_bytes = le64_put(size);
	memcpy(to, &d, FILE_EXTENT_INLINE_START);
	memcpy(to + FILE_EXTENT_INLINE_START, w->edges + FILE_EXTENT_INLINE_START, (size_t)size);
	w->in.item.nbytes = le64_put(le64_get(w->in.item.nbytes) + size);
	return 0;
}

/* Shortens an inline extent. A compressed one is rewritten, inline if that is still possible. */
static int shorten_inline(struct writing *w, uint64_t size, uint64_t inlined, struct btrkit_error *err)
{
	const int ret = cut_inline(w, size, err);

	return ret == 1 ? write_range(w, size, NULL, (size_t)(inlined - size), size, err) : ret;
}

static int resize(struct writing *w, uint64_t size, struct btrkit_error *err)
{
	const uint64_t old = le64_get(w->in.item.size);
	uint64_t inlined = 0;
	int ret = write_is_inline(w, &inlined, err);

	if (ret < 0)
		return ret;
	if (size > old)
		ret = write_extend(w, size, size, err);
	else if (!ret && size && size < inlined)
		ret = shorten_inline(w, size, inlined, err);
	else
		ret = 0;
	if (ret)
		return ret;
	w->in.item.size = le64_put(size);
	return write_put_inode(w, err);
}

/* Finds the start of the last @max extents past @limit; *@all: there are no others. */
static int find_last(struct op *op, uint64_t inode, uint64_t limit, unsigned max, uint64_t *from, bool *all,
		     struct btrkit_error *err)
{
	struct btrkit_key at = KEY(inode, KEY_EXTENT_DATA, UINT64_MAX);
	struct item item;

	*from = limit;
	*all = true;
	for (unsigned n = 0;; at.offset = item.key.offset - 1) {
		const int ret = delayed_seek_back(op->t, &op->reader, &at, &item, err);

		if (ret < 0)
			return ret;
		if (ret || item.key.type != KEY_EXTENT_DATA || item.key.offset <= limit) {
			*from = limit;
			return 0;
		}
		*from = item.key.offset;
		if (++n == max) {
			*all = false;
			return 0;
		}
	}
}

/* Removes up to @max extents; *@all: nothing is left past @size. */
static int cut_step(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, unsigned max, bool *all,
		    struct btrkit_error *err)
{
	const struct ticket_need need = { .items = 2 * max + 4, .bytes = max < CUT_ITEMS ? 512 : 4096,
					  .removes = true };
	struct op op;
	struct writing w = { .op = &op };
	uint64_t from, done;
	int ret = op_begin(&op, txn, root, &need, err);

	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	if (!ret)
		ret = find_last(&op, inode, sector_up(&op, size), max, &from, all, err);
	if (!ret)
		ret = extents_drop(&op, &w.in, from, EXTENTS_END, UINT32_MAX, &done, err);
	if (!ret && from < le64_get(w.in.item.size))
		w.in.item.size = le64_put(from);
	if (!ret)
		ret = op_inode_put(&op, &w.in, err);
	write_close(&w);
	return op_end(&op, ret, err);
}

/*
 * Removes everything past @size, starting with the last extent: if the transaction is committed in between, the file
 * ends where its data ends, and what is left does not appear when it grows again.
 */
static int cut_off(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	unsigned max = CUT_ITEMS;
	bool all = false;
	int ret = 0;

	while (!ret && !all)
		ret = op_try_fewer(txn, cut_step(txn, root, inode, size, max, &all, err), &max, FEW_ITEMS);
	return ret;
}

/* Clears some of the range from *@from, or from the end of the file if that is past it. */
static int clear_step(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned max, uint64_t *from, uint64_t to,
		      struct btrkit_error *err)
{
	/* Two parts of each extent may stay. */
	const uint32_t item = sizeof(struct disk_item) + sizeof(struct disk_file_extent);
	const struct ticket_need need = { .items = 3 * max + 2, .bytes = 3 * max * item };
	struct op op;
	struct writing w = { .op = &op };
	uint64_t end;
	int ret = op_begin(&op, txn, root, &need, err);

	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	if (!ret) {
		end = sector_up(&op, le64_get(w.in.item.size));
		if (end > *from)
			*from = end;
		ret = extents_clear_behind(&op, &w.in, *from, sector_up(&op, to), max, from, err);
	}
	if (!ret)
		ret = op_inode_put(&op, &w.in, err);
	write_close(&w);
	return op_end(&op, ret, err);
}

int write_clear(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t to, struct btrkit_error *err)
{
	unsigned max = CLEAR_ITEMS;
	uint64_t from = 0;
	int ret = 0;

	while (!ret && from < to)
		ret = op_try_fewer(txn, clear_step(txn, root, inode, max, &from, to, err), &max, FEW_ITEMS);
	return ret;
}

/* The file must be cut off first. */
#define CUT_OFF 1

/* @return 0; CUT_OFF; WRITE_CLEAR; <0 */
static int truncate_once(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, bool shorter,
			 struct btrkit_error *err)
{
	struct ticket_need need = write_need(txn, 1);
	struct op op;
	struct writing w = { .op = &op };
	struct extent_at x;
	int ret;

	need.removes = shorter;
	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	/* Preallocated extents past the end are cut off as well. */
	if (!ret && size <= le64_get(w.in.item.size)) {
		ret = extents_next(&op, inode, sector_up(&op, size), EXTENTS_END, &x, err);
		ret = ret < 0 ? ret : ret ? 0 : CUT_OFF;
	} else if (!ret) {
		ret = write_check_extend(&w, size, err);
	}
	if (!ret)
		ret = resize(&w, size, err);
	write_close(&w);
	return op_end(&op, ret, err);
}

/* Whether a file does not grow: then the reserve kept for Linux may be used. @return 0; 1: it grows; <0 */
static int check_shorter(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	struct op_inode in;
	struct op op;
	int ret = op_begin_reading(&op, txn, root, err);

	if (ret)
		return ret;
	delayed_lock(op.t, &inode, 1, &op.locks);
	ret = op_inode_get(&op, inode, &in, err);
	return op_end(&op, ret ? ret : size > le64_get(in.item.size), err);
}

static int truncate_all(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	bool tried = false, shorter = false;
	int ret;

	if (size > INT64_MAX)
		return err_system(err, EFBIG, "file larger than 8 EiB");
	for (;;) {
		ret = truncate_once(txn, root, inode, size, shorter, err);
		if (ret == CUT_OFF) {
			shorter = true;
			ret = cut_off(txn, root, inode, size, err);
		} else if (ret == WRITE_CLEAR) {
			ret = write_clear(txn, root, inode, size, err);
		} else if (op_less_may_do(txn, ret) && !shorter) {
			/* Keep the error unless this fails too. */
			ret = check_shorter(txn, root, inode, size, err);
			shorter = !ret;
			if (ret == 1)
				ret = -ENOSPC;
		} else if (!ret) {
			return 0;
		}
		/* Repeat, since another thread may have written there meanwhile. */
		if (ret == -ENOSPC)
			ret = op_again(txn, &tried, ret, err);
		if (ret)
			return ret;
	}
}

int btrkit_txn_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, truncate_all(txn, root, inode, size, &own));
}
