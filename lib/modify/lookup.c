// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is there in a transaction, without putting what waits into the trees. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/names.h"

static uint8_t dirent_type(uint8_t type)
{
	static const uint8_t types[] = {
		[FT_REG] = DT_REG,   [FT_DIR] = DT_DIR,	  [FT_CHR] = DT_CHR,	 [FT_BLK] = DT_BLK,
		[FT_FIFO] = DT_FIFO, [FT_SOCK] = DT_SOCK, [FT_SYMLINK] = DT_LNK,
	};

	return type < sizeof(types) ? types[type] : DT_UNKNOWN;
}

/* A subvolume begins at an entry, or its place is empty. */
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

static int look_up(struct op *op, uint64_t dir_inode, const struct name *name, struct btrkit_found *ret,
		   struct btrkit_error *err)
{
	struct name_entry entry;
	struct op_inode dir;
	int r;

	delayed_lock(op->t, &dir_inode, 1, &op->locks);
	r = op_inode_get(op, dir_inode, &dir, err);
	if (!r && !S_ISDIR(op_inode_mode(&dir)))
		r = err_system(err, ENOTDIR, "inode %" PRIu64, dir_inode);
	if (!r)
		r = name_find(op, &dir, name, &entry, err);
	if (r == 1)
		r = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)name->len, name->bytes);
	if (r)
		return r;
	*ret = (struct btrkit_found){ op->t->id, entry.location.objectid, dirent_type(entry.type) };
	return entry.location.type == KEY_ROOT_ITEM ? enter_subvolume(op, &dir, name, &entry, ret, err) : 0;
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

int name_judge_in(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name,
		  struct btrkit_error *err)
{
	struct btrkit_found found;

	return name->len > NAME_LEN_MAX ? btrkit_txn_lookup(txn, root, dir, name->bytes, name->len, &found, err) :
					  name_judge(name, err);
}

int btrkit_txn_flush(struct btrkit_txn *txn, struct btrkit_error *err)
{
	return delayed_run(txn->delayed, err);
}
