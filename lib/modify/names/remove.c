// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removal of names, and of inodes with their last name. */
#include "lib/modify/names/remove.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/subvolume_remove.h"

/* An inode with at most this many items is removed together with its name. */
#define SMALL 4u

/* Items of an orphan that one operation removes, and the same if space is short. */
#define AT_A_TIME 32u
#define FEW_AT_A_TIME 4u

static struct btrkit_key orphan_key(uint64_t inode)
{
	return KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, inode);
}

int remove_check_name(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		      struct btrkit_error *err)
{
	const bool is_dir = S_ISDIR(op_inode_mode(in));
	int ret = op_check_dir(op, dir, INODE_APPEND, err);

	if (!ret)
		ret = op_check_fixed(in, err);
	if (!ret && is_dir && !directory)
		ret = err_system(err, EISDIR, "inode %" PRIu64, in->inode);
	if (!ret && !is_dir && directory)
		ret = err_system(err, ENOTDIR, "inode %" PRIu64, in->inode);
	return ret;
}

int remove_check(const struct op *op, const struct op_inode *dir, const struct op_inode *in, bool directory,
		 struct btrkit_error *err)
{
	int ret = remove_check_name(op, dir, in, directory, err);

	if (!ret && S_ISDIR(op_inode_mode(in)) && le64_get(in->item.size))
		ret = err_system(err, ENOTEMPTY, "directory %" PRIu64, in->inode);
	return ret;
}

/*
 * Refuses an item which shows that the inode must stay: it has other names, or it is a directory that still has
 * entries.
 */
static int check_item(const struct op *op, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = 0;

	if (key->type == KEY_INODE_REF || key->type == KEY_INODE_EXTREF)
		ret = err_corrupt(err, "nlink", "inode %" PRIu64 " has more names than its link count", key->objectid);
	else if (key->type == KEY_DIR_ITEM || key->type == KEY_DIR_INDEX)
		ret = err_corrupt(err, "size", "directory %" PRIu64 " has size 0, but is not empty",
				  key->objectid);
	if (ret) {
		err_at_tree(err, op->t->id);
		err_at_key(err, key);
	}
	return ret;
}

/* Checks all items of an inode. */
static int check_items(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	static const uint8_t first[] = { KEY_INODE_REF, KEY_DIR_ITEM };
	struct item item;
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < sizeof(first); i++) {
		const struct btrkit_key key = KEY(inode, first[i], 0);

		ret = delayed_seek(op->t, &op->reader, &key, &item, err);
		if (!ret)
			ret = check_item(op, &item.key, err);
	}
	return ret < 0 ? ret : 0;
}

/* Removes all items of an inode that has few. @return 0; 1: it has more, and none was removed; <0 */
static int remove_small(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	struct btrkit_key keys[SMALL], at = KEY(inode, 255, UINT64_MAX);
	struct item item;
	unsigned n = 0;
	int ret;

	while (!(ret = delayed_seek_back(op->t, NULL, &at, &item, err))) {
		if (n == SMALL)
			return 1;
		ret = check_item(op, &item.key, err);
		if (ret)
			return ret;
		at = keys[n++] = item.key;
		if (!at.offset-- && !at.type--)
			break;
	}
	for (unsigned i = 0; ret >= 0 && i < n; i++)
		ret = delayed_delete(op->t, &keys[i], err);
	return ret < 0 ? ret : 0;
}

/* The item may exist already, because of an unfinished verity seal. */
static int add_orphan_item(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	const struct btrkit_key key = orphan_key(inode);
	struct item item;
	int ret;

	/* Only inodes with many items get here, so other operations do not wait for this lock. */
	if (!op->exclusive)
		delayed_lock_orphans(op->t, &op->locks);
	ret = delayed_find(op->t, &op->reader, &key, &item, err);
	return ret == 1 ? delayed_insert(op->t, &key, "", 0, NULL, err) : ret;
}

int remove_name(struct op *op, struct op_inode *dir, struct op_inode *in, const struct name *name, bool *orphan,
		struct btrkit_error *err)
{
	uint32_t nlink = le32_get(in->item.nlink);
	uint64_t index;
	int ret;

	if (!nlink)
		return err_corrupt(err, "nlink", "inode %" PRIu64 " has a name, but link count 0", in->inode);
	ret = name_ref_remove(op, in->inode, dir->inode, name, &index, err);
	if (!ret)
		ret = name_remove(op, dir, name, index, err);
	if (ret)
		return ret;
	/* A directory has exactly one link, whatever is in it. */
	nlink--;
	in->item.nlink = le32_put(nlink);
	in->item.ctime = op->now;
	*orphan = false;
	if (!nlink)
		ret = remove_small(op, in->inode, err);
	if (!nlink && ret != 1)
		return ret;
	if (!nlink) {
		*orphan = true;
		ret = check_items(op, in->inode, err);
		if (!ret)
			ret = add_orphan_item(op, in->inode, err);
	}
	return ret ? ret : op_inode_put(op, in, err);
}

/* Removes some items of an inode; *@more: whether there are others. */
static int remove_some(struct op *op, uint64_t inode, unsigned max, bool *more, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(inode, 255, UINT64_MAX);
	struct item item;
	int ret = 0;

	/* Backwards, so that the INODE_ITEM is the last one. */
	for (unsigned i = 0; !ret && i < max; i++) {
		ret = delayed_seek_back(op->t, NULL, &at, &item, err);
		if (!ret) {
			at = item.key;
			ret = delayed_delete(op->t, &at, err);
		}
	}
	*more = !ret;
	return ret < 0 ? ret : 0;
}

int remove_orphan_item(struct op *op, uint64_t inode, struct btrkit_error *err)
{
	const struct btrkit_key key = orphan_key(inode);
	struct item item;
	const int ret = delayed_find(op->t, &op->reader, &key, &item, err);

	return ret ? (ret < 0 ? ret : 0) : delayed_delete(op->t, &key, err);
}

static int remove_step(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned max, bool *more,
		       struct btrkit_error *err)
{
	const struct ticket_need need = { .items = max + 1, .removes = true };
	struct op op;
	int ret = op_begin(&op, txn, root, &need, err);

	if (ret)
		return ret;
	delayed_lock(op.t, (const uint64_t[]){ inode, OID_ORPHAN }, 2, &op.locks);
	ret = remove_some(&op, inode, max, more, err);
	if (!ret && !*more)
		ret = remove_orphan_item(&op, inode, err);
	return op_end(&op, ret, err);
}

static int remove_steps(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	unsigned max = AT_A_TIME;
	bool more = true;
	int ret = 0;

	while (!ret && more)
		ret = op_try_fewer(txn, remove_step(txn, root, inode, max, &more, err), &max, FEW_AT_A_TIME);
	return ret;
}

int remove_orphan(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, remove_steps(txn, root, inode, &own));
}

/* Removes the stub of a subvolume. @return 0; 1: it is a subvolume; <0 */
static int unlink_place(struct op *op, struct op_inode *dir, const struct name *name, const struct name_entry *entry,
			enum btrkit_unlink_what what, struct btrkit_error *err)
{
	uint64_t index;
	int ret;

	ret = op_check_dir(op, dir, INODE_APPEND, err);
	if (!ret)
		ret = name_is_subvolume(op, dir, name, entry, err);
	if (ret <= 0)
		return ret ? ret : 1;
	if (what == BTRKIT_UNLINK_FILE)
		return err_system(err, EISDIR, "\"%.*s\" is the stub of a subvolume", (int)name->len, name->bytes);
	ret = name_find_index(op, dir, name, &index, err);
	if (!ret)
		ret = name_remove(op, dir, name, index, err);
	return ret ? ret : op_inode_put(op, dir, err);
}

/* The error for removing a subvolume like a file. @return -EPERM; -EISDIR; <0 */
static int refuse_subvolume(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	const uint64_t top = OID_FIRST_FREE;
	struct op_inode in;
	struct op op;
	int ret = op_begin_reading(&op, txn, id, err);

	if (ret)
		return ret;
	delayed_lock(op.t, &top, 1, &op.locks);
	ret = op_inode_get(&op, top, &in, err);
	if (!ret)
		ret = op_check_fixed(&in, err);
	return op_end(&op, ret ? ret : err_system(err, EISDIR, "subvolume %" PRIu64, id), err);
}

int btrkit_txn_unlink(struct btrkit_txn *txn, uint64_t root, uint64_t dir_inode, const char *bytes, size_t len,
		      enum btrkit_unlink_what what, struct btrkit_error *err)
{
	const struct ticket_need need = { .items = REMOVE_ITEMS, .bytes = 64, .removes = true };
	const struct name name = { bytes, len };
	const struct roots_place place = { .parent = root, .dir = dir_inode, .name = name };
	struct op_inode dir, in = { 0 };
	struct name_entry entry;
	bool orphan = false;
	struct op op;
	int ret;

	if (what != BTRKIT_UNLINK_FILE && what != BTRKIT_UNLINK_DIR)
		return err_set(err, BTRKIT_INVALID, "unknown type of object to remove");
	ret = name_check_in(txn, root, dir_inode, &name, err);
	if (!ret)
		ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = name_lock(&op, dir_inode, &name, &dir, &in, &entry, err);
	if (ret == 1) {
		ret = op_end(&op, unlink_place(&op, &dir, &name, &entry, what, err), err);
		if (ret != 1)
			return ret;
		return what == BTRKIT_UNLINK_FILE ?
			       refuse_subvolume(txn, entry.location.objectid, err) :
			       subvolume_remove_empty(txn, entry.location.objectid, &place, err);
	}
	if (!ret)
		ret = remove_check(&op, &dir, &in, what == BTRKIT_UNLINK_DIR, err);
	if (!ret)
		ret = remove_name(&op, &dir, &in, &name, &orphan, err);
	if (!ret)
		ret = op_inode_put(&op, &dir, err);
	if (!ret)
		op_spare(&op, &need, orphan ? need.bytes : 0);
	ret = op_end(&op, ret, err);
	return ret || !orphan ? ret : remove_orphan(txn, root, in.inode, err);
}
