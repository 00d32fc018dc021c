// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/names/names.h"

#define LINKS_MAX 65535u

struct linking {
	struct op *op;	  /* on the subvolume of the new name */
	struct op *other; /* on the subvolume of the file, if that is another one; otherwise NULL */
	uint64_t inode;
	struct op_inode dir, in;
};

/* @return 0; -EPERM; -ENOENT: it has no names left */
static int check_file(const struct linking *l, struct btrkit_error *err)
{
	/* The stub of a subvolume is a directory, too. */
	if (l->inode == BTRKIT_EMPTY_SUBVOLUME || S_ISDIR(op_inode_mode(&l->in)) ||
	    le64_get(l->in.item.flags) & (INODE_IMMUTABLE | INODE_APPEND))
		return err_system(err, EPERM, "inode %" PRIu64 " cannot be linked", l->inode);
	if (!le32_get(l->in.item.nlink))
		return err_set(err, BTRKIT_NOT_FOUND, "inode %" PRIu64 " was removed", l->inode);
	return 0;
}

/* In the order in which Linux checks. */
static int check_link(const struct linking *l, const struct name *name, struct btrkit_error *err)
{
	int ret = name_check_new(l->op, &l->dir, name, err);

	if (!ret)
		ret = check_file(l, err);
	if (ret)
		return ret;
	if (l->other)
		return err_system(err, EXDEV, "inode %" PRIu64 " is in subvolume %" PRIu64, l->inode,
				  l->other->t->id);
	if (le32_get(l->in.item.nlink) >= LINKS_MAX)
		return err_system(err, EMLINK, "inode %" PRIu64 " has %u names", l->inode, LINKS_MAX);
	ret = name_ref_fits(l->op, l->inode, l->dir.inode, name, err);
	return ret ? ret : name_fits(l->op, &l->dir, name, err);
}

static int find_both(struct linking *l, uint64_t dir, struct btrkit_error *err)
{
	struct op *from = l->other ? l->other : l->op;
	int ret = 0;

	delayed_lock_two(l->op->t, dir, from->t, l->inode, &l->op->locks);
	if (l->inode != BTRKIT_EMPTY_SUBVOLUME)
		ret = op_inode_get(from, l->inode, &l->in, err);
	return ret ? ret : op_inode_get(l->op, dir, &l->dir, err);
}

static int make_link(struct linking *l, const struct name *name, struct btrkit_error *err)
{
	struct name_entry entry = { .location = KEY(l->inode, KEY_INODE_ITEM, 0) };
	struct op *op = l->op;
	uint64_t index;
	int ret;

	ret = delayed_next_index(op->t, &op->reader, l->dir.inode, &index, err);
	if (!ret)
		ret = name_ref_add(op, l->inode, l->dir.inode, name, index, false, err);
	if (ret)
		return ret;
	entry.type = dir_type_of_mode(op_inode_mode(&l->in));
	ret = name_add(op, &l->dir, name, &entry, index, err);
	l->in.item.nlink = le32_put(le32_get(l->in.item.nlink) + 1);
	l->in.item.ctime = op->now;
	if (!ret)
		ret = op_inode_put(op, &l->in, err);
	return ret ? ret : op_inode_put(op, &l->dir, err);
}

/* A link to another subvolume always fails. This determines which error is reported. */
static int link_across(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_place *to,
		       struct btrkit_error *err)
{
	const struct name name = { to->name, to->len };
	struct op op, other;
	struct linking l = { .op = &op, .other = &other, .inode = inode };
	int ret = op_begin_reading(&op, txn, to->root, err);

	if (ret)
		return ret;
	ret = op_join(&op, root, &other, err);
	if (!ret)
		ret = find_both(&l, to->dir, err);
	if (!ret)
		ret = check_link(&l, &name, err);
	delayed_reader_release(&other.reader);
	return op_end(&op, ret, err);
}

int btrkit_txn_link(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_place *to,
		    struct btrkit_error *err)
{
	const struct name name = { to->name, to->len };
	struct ticket_need need;
	struct op op;
	struct linking l = { .op = &op, .inode = inode };
	int ret;

	ret = name_check_in(txn, to->root, to->dir, &name, err);
	if (ret)
		return ret;
	if (root != to->root)
		return link_across(txn, root, inode, to, err);
	/* The INODE_REF or INODE_EXTREF, the entry and its index, and both inodes. */
	need = (struct ticket_need){
		.items = 6,
		.bytes = (uint32_t)(4 * sizeof(struct disk_item) + sizeof(struct disk_inode_extref) +
				    2 * sizeof(struct disk_dir_item) + 3 * name.len),
	};
	ret = op_begin(&op, txn, root, &need, err);
	if (ret)
		return ret;
	ret = find_both(&l, to->dir, err);
	if (!ret)
		ret = check_link(&l, &name, err);
	ret = op_end(&op, ret ? ret : make_link(&l, &name, err), err);
	return name_in_the_way(txn, root, to->dir, &name, ret, err);
}
