// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cleanup after a crash: inodes without names, and unfinished verity seals. */
#include "lib/modify/names/remove.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"

#define AT_A_TIME 32u /* items removed by one operation */

/* Finds the next orphan from @from on. @return 0; 1: there is none; <0 */
static int next_orphan(struct btrkit_txn *txn, uint64_t root, uint64_t from, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t orphans = OID_ORPHAN;
	struct item item;
	struct op op;
	int r = op_begin_reading(&op, txn, root, err);

	if (r)
		return r;
	delayed_lock(op.t, &orphans, 1, &op.locks);
	r = delayed_seek(op.t, NULL, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, from), &item, err);
	if (!r && item.key.type != KEY_ORPHAN_ITEM)
		r = 1;
	if (!r)
		*ret = item.key.offset;
	return op_end(&op, r, err);
}

/* Removes some items of a verity seal. @return 0: there may be more; 1: there are none; <0 */
static int drop_seal(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	for (unsigned i = 0; i < AT_A_TIME; i++) {
		struct btrkit_key key = KEY(inode, KEY_VERITY_DESC_ITEM, 0);
		struct item item;
		int ret = delayed_seek(op->t, NULL, &key, &item, err);

		if (!ret && item.key.type != KEY_VERITY_DESC_ITEM && item.key.type != KEY_VERITY_MERKLE_ITEM)
			ret = 1;
		if (ret)
			return ret;
		key = item.key;
		ret = delayed_delete(op->t, &key, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* @return 0: not done yet; 1: done; 2: the inode is to be removed; <0 */
static int clean_step(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	const uint64_t inodes[] = { inode, OID_ORPHAN };
	struct op_inode in;
	int ret;

	delayed_lock(op->t, inodes, 2, &op->locks);
	ret = op_inode_get(op, inode, &in, &own);
	if (!ret && !le32_get(in.item.nlink))
		return 2;
	/* An inode with names stays; an unfinished verity seal is removed. */
	if (!ret)
		ret = le64_get(in.item.flags) & INODE_VERITY ? 1 : drop_seal(op, inode, err);
	else
		ret = ret == -ENOENT ? 1 : err_pass(err, &own, ret);
	if (ret != 1)
		return ret;
	ret = remove_orphan_item(op, inode, err);
	return ret ? ret : 1;
}

static int clean(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	const struct ticket_need need = { .items = AT_A_TIME + 1, .removes = true };
	int ret = 0;

	while (!ret) {
		struct op op;

		ret = op_begin(&op, txn, root, &need, err);
		if (ret)
			return ret;
		ret = op_end(&op, clean_step(&op, inode, err), err);
	}
	if (ret == 2)
		ret = remove_orphan(txn, root, inode, err);
	return ret < 0 ? ret : 0;
}

int btrkit_txn_orphans_clean(struct btrkit_txn *txn, uint64_t root, uint64_t *count, struct btrkit_error *err)
{
	uint64_t inode = 0, n = 0;
	int ret;

	while (!(ret = next_orphan(txn, root, inode, &inode, err))) {
		ret = clean(txn, root, inode, err);
		if (ret)
			break;
		n++;
		if (++inode == 0)
			break;
	}
	if (count)
		*count = n;
	return ret == 1 ? 0 : ret;
}
