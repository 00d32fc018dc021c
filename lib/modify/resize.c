// SPDX-License-Identifier: LGPL-2.1-or-later
/* Another size for a file. */
#include "lib/modify/write.h"

#include <errno.h>

#include "lib/base/err.h"

int write_drop(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t from, uint64_t to,
	       struct btrkit_error *err)
{
	const struct ticket_need need = { .items = 2 * WRITE_ITEMS + 4, .bytes = 4096, .removes = true };
	int ret = 0;

	while (!ret && from < to) {
		uint64_t done = 0, end;
		struct op_inode in;
		struct op op;

		ret = op_begin(&op, txn, root, &need, err);
		if (ret)
			return ret;
		delayed_lock(op.t, &inode, 1, &op.locks);
		ret = op_inode_get(&op, inode, &in, err);
		if (!ret)
			ret = extents_drop(&op, &in, from, to, WRITE_ITEMS, &done, err);
		if (!ret) {
			end = sector_up(&op, le64_get(in.item.size));
			ret = extents_put_hole(&op, &in, from, done < end ? done : end, err);
		}
		if (!ret)
			ret = op_inode_put(&op, &in, err);
		from = done;
		ret = op_end(&op, ret);
	}
	return ret;
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
		/* The sector is written anew, inline again if it still may be. */
		ret = write_range(w, size, NULL, (size_t)(inlined - size), size, err);
	else
		ret = 0;
	if (ret)
		return ret;
	w->in.item.size = le64_put(size);
	return write_put_inode(w, err);
}

static int truncate_once(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, uint64_t *drop_from,
			 struct btrkit_error *err)
{
	const struct ticket_need need = write_need(txn, 1);
	struct op op;
	struct writing w = { .op = &op };
	int ret;

	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	if (!ret) {
		*drop_from = size > le64_get(w.in.item.size) ? UINT64_MAX : sector_up(&op, size);
		ret = resize(&w, size, err);
	}
	write_close(&w);
	return op_end(&op, ret);
}

int btrkit_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size, struct btrkit_error *err)
{
	uint64_t drop_from = UINT64_MAX;
	bool tried = false;
	int ret;

	if (size > INT64_MAX)
		return err_system(err, EFBIG, "a file of more than 8 EiB");
	ret = truncate_once(txn, root, inode, size, &drop_from, err);
	if (ret == -ENOSPC) {
		ret = op_again(txn, &tried, ret, err);
		if (!ret)
			ret = truncate_once(txn, root, inode, size, &drop_from, err);
	}
	/* Also what was kept free behind the end. */
	return ret ? ret : write_drop(txn, root, inode, drop_from, UINT64_MAX - 4095, err);
}
