// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookup of names in a transaction. It does not flush delayed items. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/modify/names/names.h"

/* Handles an entry that leads to a subvolume, or to the stub of one. */
static int enter_subvolume(struct op *op, const struct op_inode *dir, const struct name *name,
			   const struct name_entry *entry, struct btrkit_found *found, struct btrkit_error *err)
{
	const int ret = name_is_subvolume(op, dir, name, entry, err);

	if (ret < 0)
		return ret;
	found->root = ret ? op->t->id : found->inode;
	found->inode = ret ? BTRKIT_EMPTY_SUBVOLUME : OID_FIRST_FREE;
	return 0;
}

int name_check_type(const struct op *op, const struct op_inode *dir, const struct name *name,
		    const struct name_entry *entry, const struct op_inode *in, struct btrkit_error *err)
{
	const uint32_t mode = op_inode_mode(in);
	int ret;

	if (entry->type == dir_type_of_mode(mode))
		return 0;
	ret = err_corrupt(err, "type", "entry \"%.*s\" has type %u, but inode %" PRIu64 " has mode 0%" PRIo32,
			  (int)name->len, name->bytes, entry->type, in->inode, mode);
	err_at_tree(err, op->t->id);
	err_at_key(err, &KEY(dir->inode, KEY_DIR_ITEM, dir_name_hash(name->bytes, name->len)));
	return ret;
}

int name_lock(struct op *op, uint64_t dir_inode, const struct name *name, struct op_inode *dir, struct op_inode *in,
	      struct name_entry *entry, struct btrkit_error *err)
{
	struct name_entry again;
	int ret;

	delayed_lock(op->t, &dir_inode, 1, &op->locks);
	for (;;) {
		ret = op_inode_get(op, dir_inode, dir, err);
		if (!ret)
			ret = op_check_is_dir(dir, err);
		if (!ret)
			ret = name_find(op, dir, name, entry, err);
		if (ret == 1)
			ret = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)name->len, name->bytes);
		if (ret)
			return ret;
		if (entry->location.type != KEY_INODE_ITEM)
			return 1;
		delayed_unlock(&op->locks);
		delayed_lock(op->t, (const uint64_t[]){ dir_inode, entry->location.objectid }, 2, &op->locks);
		ret = name_find(op, dir, name, &again, err);
		if (ret < 0)
			return ret;
		if (!ret && !key_cmp(&entry->location, &again.location))
			break;
	}
	ret = op_inode_get(op, dir_inode, dir, err);
	if (!ret)
		ret = op_inode_get(op, entry->location.objectid, in, err);
	return ret ? ret : name_check_type(op, dir, name, entry, in, err);
}

static int look_up(struct op *op, uint64_t dir_inode, const struct name *name, struct btrkit_found *ret,
		   struct btrkit_error *err)
{
	struct op_inode dir, in;
	struct name_entry entry;
	struct btrkit_found found;
	int r = name_lock(op, dir_inode, name, &dir, &in, &entry, err);

	if (r < 0)
		return r;
	found = (struct btrkit_found){ op->t->id, entry.location.objectid, dir_type_to_dirent(entry.type) };
	if (r)
		r = enter_subvolume(op, &dir, name, &entry, &found, err);
	if (!r)
		*ret = found;
	return r;
}

int btrkit_txn_lookup(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *bytes, size_t len,
		      struct btrkit_found *ret, struct btrkit_error *err)
{
	const struct name name = { bytes, len };
	struct op op;
	int r;

	r = op_begin_reading(&op, txn, root, err);
	return r ? r : op_end(&op, look_up(&op, dir, &name, ret, err), err);
}

int name_in_the_way(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name, int ret,
		    struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_found found;

	if (ret != -EEXIST || btrkit_txn_lookup(txn, root, dir, name->bytes, name->len, &found, &what) != -EUCLEAN)
		return ret;
	if (err)
		*err = what;
	return -EUCLEAN;
}

int name_check_in(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name,
		  struct btrkit_error *err)
{
	struct btrkit_found found;

	return name->len > NAME_LEN_MAX ? btrkit_txn_lookup(txn, root, dir, name->bytes, name->len, &found, err) :
					  name_check(name, err);
}

int btrkit_txn_flush(struct btrkit_txn *txn, struct btrkit_error *err)
{
	return delayed_run(txn->delayed, err);
}
