// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/names.h"

#define LINKS_MAX 65535u

static int judge(struct op *op, const struct op_inode *dir, const struct op_inode *in, const struct name *name,
		 struct btrkit_error *err)
{
	int ret = name_judge_new(op, dir, name, err);

	if (ret)
		return ret;
	if (S_ISDIR(op_inode_mode(in)) || le64_get(in->item.flags) & (INODE_IMMUTABLE | INODE_APPEND))
		return err_system(err, EPERM, "inode %" PRIu64 " may have no other name", in->inode);
	if (!le32_get(in->item.nlink))
		return err_set(err, BTRKIT_NOT_FOUND, "inode %" PRIu64 " was removed", in->inode);
	if (le32_get(in->item.nlink) >= LINKS_MAX)
		return err_system(err, EMLINK, "inode %" PRIu64 " has %u names", in->inode, LINKS_MAX);
	ret = name_ref_fits(op, in->inode, dir->inode, name, err);
	return ret ? ret : name_fits(op, dir, name, err);
}

static int make_link(struct op *op, uint64_t inode, uint64_t dir_inode, const struct name *name,
		     struct btrkit_error *err)
{
	struct name_entry entry = { .location = KEY(inode, KEY_INODE_ITEM, 0) };
	struct op_inode dir, in;
	uint64_t index;
	int ret;

	delayed_lock(op->t, (const uint64_t[]){ dir_inode, inode }, 2, &op->locks);
	ret = op_inode_get(op, dir_inode, &dir, err);
	if (!ret)
		ret = op_inode_get(op, inode, &in, err);
	if (!ret)
		ret = judge(op, &dir, &in, name, err);
	if (!ret)
		ret = delayed_next_index(op->t, &op->reader, dir_inode, &index, err);
	if (!ret)
		ret = name_ref_add(op, inode, dir_inode, name, index, false, err);
	if (ret)
		return ret;
	entry.type = op_entry_type(op_inode_mode(&in));
	ret = name_add(op, &dir, name, &entry, index, err);
	in.item.nlink = le32_put(le32_get(in.item.nlink) + 1);
	in.item.ctime = op->now;
	if (!ret)
		ret = op_inode_put(op, &in, err);
	return ret ? ret : op_inode_put(op, &dir, err);
}

int btrkit_link(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t dir, const char *bytes, size_t len,
		struct btrkit_error *err)
{
	const struct name name = { bytes, len };
	struct ticket_need need;
	struct op op;
	int ret;

	ret = name_judge_in(txn, root, dir, &name, err);
	if (ret)
		return ret;
	/* The reference, or an extended one; entry, index, and both inodes. */
	need = (struct ticket_need){
		.items = 6,
		.bytes = (uint32_t)(4 * sizeof(struct disk_item) + sizeof(struct disk_inode_extref) +
				    2 * sizeof(struct disk_dir_item) + 3 * len),
	};
	ret = op_begin(&op, txn, root, &need, err);
	return ret ? ret : op_end(&op, make_link(&op, inode, dir, &name, err));
}
