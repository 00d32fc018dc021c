// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/op.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/format/items/files/dir.h"

#define NSEC_PER_SEC 1000000000u

static void open_nowhere(struct op *op, struct btrkit_txn *txn)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	*op = (struct op){ .txn = txn,
			   .d = txn->delayed,
			   .now = { le64_put((uint64_t)now.tv_sec), le32_put((uint32_t)now.tv_nsec) } };
}

static int open_op(struct op *op, struct btrkit_txn *txn, uint64_t root, struct btrkit_error *err)
{
	open_nowhere(op, txn);
	return delayed_tree(op->d, root, &op->t, err);
}

/* Checked inside the gate or when exclusive: before that, the subvolume may still be deleted. */
static int check_tree(const struct op *op, struct btrkit_error *err)
{
	return op->t && op->t->deleted ? err_set(err, BTRKIT_NOT_FOUND, "no subvolume %" PRIu64, op->t->id) : 0;
}

int op_begin(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
	     struct btrkit_error *err)
{
	int ret = open_op(op, txn, root, err);

	/* What fails half way in there has noted that already. */
	if (!ret)
		ret = ticket_enter(txn, need, err);
	if (ret)
		return ret;
	ret = check_tree(op, err);
	if (ret)
		sync_leave(&op->txn->sync);
	return ret;
}

int op_begin_reading(struct op *op, struct btrkit_txn *txn, uint64_t root, struct btrkit_error *err)
{
	int ret = open_op(op, txn, root, err);

	if (ret)
		return ret;
	sync_enter(&op->txn->sync);
	/* If a commit failed in between, there are no trees any more. */
	ret = failure_check(op->txn->failure, err);
	if (!ret)
		ret = check_tree(op, err);
	if (ret)
		sync_leave(&op->txn->sync);
	return ret;
}

static int begin_exclusive(struct op *op, const struct ticket_need *need, const struct ticket_exclusive *exclusive,
			   struct btrkit_error *err)
{
	int ret;

	ticket_close(op->txn);
	/* What fails half way in these has noted that already. */
	ret = delayed_run_exclusive(op->d, err);
	if (!ret)
		ret = check_tree(op, err);
	if (!ret)
		ret = ticket_exclusive(op->txn, need, exclusive, err);
	if (ret) {
		sync_end_exclusive(&op->txn->sync);
		return ret;
	}
	op->exclusive = true;
	op->edits = op->txn->overlay->edits;
	op->delayed = delayed_num_changes(op->d);
	return 0;
}

bool op_has_changed(const struct op *op)
{
	return op->txn->overlay->edits != op->edits || delayed_num_changes(op->d) != op->delayed;
}

int op_begin_exclusive(struct op *op, struct btrkit_txn *txn, uint64_t root, const struct ticket_need *need,
		       const struct ticket_exclusive *exclusive, struct btrkit_error *err)
{
	const int ret = open_op(op, txn, root, err);

	return ret ? ret : begin_exclusive(op, need, exclusive, err);
}

int op_begin_nowhere(struct op *op, struct btrkit_txn *txn, const struct ticket_need *need,
		     const struct ticket_exclusive *exclusive, struct btrkit_error *err)
{
	open_nowhere(op, txn);
	return begin_exclusive(op, need, exclusive, err);
}

int op_join(const struct op *op, uint64_t root, struct op *ret, struct btrkit_error *err)
{
	int r;

	*ret = (struct op){ .txn = op->txn, .d = op->d, .now = op->now, .exclusive = op->exclusive };
	r = delayed_tree(op->d, root, &ret->t, err);
	return r ? r : check_tree(ret, err);
}

int op_end_exclusive(struct op *op, int ret, struct btrkit_error *err)
{
	/* As in op_end(). The thread that commits may be another one. */
	if (ret && (ret == -EBUSY || op_has_changed(op)))
		failure_note_fatal(op->txn->failure, ret, err);
	/* No delayed item may be left without a reservation. */
	if (!ret)
		ret = delayed_run_exclusive(op->d, err);
	ticket_exclusive_end(op->txn);
	sync_end_exclusive(&op->txn->sync);
	delayed_reader_release(&op->reader);
	return ret;
}

void op_spare(struct op *op, const struct ticket_need *need, uint32_t bytes)
{
	const struct delayed_amount used = delayed_places(&op->locks);
	const struct delayed_amount spare = { .items = used.items < need->items ? need->items - used.items : 0,
					     .bytes = bytes < need->bytes ? need->bytes - bytes : 0,
					     .leaves = used.leaves < need->items ? need->items - used.leaves : 0 };

	ticket_spare(op->txn, &spare, need->removes);
}

int op_end(struct op *op, int ret, const struct btrkit_error *err)
{
	/*
	 * What has changed nothing fails alone. It does not matter then why it failed, except that nobody may write
	 * after another program has.
	 */
	if (op->changed || delayed_changed(&op->locks) || ret == -EBUSY)
		failure_note_fatal(op->txn->failure, ret, err);
	delayed_unlock(&op->locks);
	sync_leave(&op->txn->sync);
	delayed_reader_release(&op->reader);
	delayed_run_much(op->d);
	return ret;
}

void op_need_feature(struct op *op, uint64_t incompat)
{
	struct disk_super *super = &op->txn->super;

	sync_lock_space(&op->txn->sync);
	super->incompat_flags = le64_put(le64_get(super->incompat_flags) | incompat);
	sync_unlock_space(&op->txn->sync);
}

bool op_less_may_do(const struct btrkit_txn *txn, int ret)
{
	return ret == -ENOSPC && !failure_is_set(txn->failure) && !tickets_device_full(txn->tickets);
}

int op_try_fewer(const struct btrkit_txn *txn, int ret, unsigned *max, unsigned few)
{
	if (*max == few || !op_less_may_do(txn, ret))
		return ret;
	*max = few;
	return 0;
}

int op_again(struct btrkit_txn *txn, bool *tried, int ret, struct btrkit_error *err)
{
	if (ret != -ENOSPC || *tried || tickets_device_full(txn->tickets))
		return ret;
	*tried = true;
	/* If nothing is committed the error remains valid. */
	return ticket_commit(txn, err);
}

int op_inode_get(struct op *op, uint64_t inode, struct op_inode *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, KEY_INODE_ITEM, 0);
	struct item item;
	int r;

	r = delayed_find(op->t, &op->reader, &key, &item, err);
	if (r == 1)
		return err_set(err, BTRKIT_NOT_FOUND, "no inode %" PRIu64 " in subvolume %" PRIu64, inode, op->t->id);
	if (!r && item.size != sizeof(ret->item))
		r = err_corrupt(err, "item_size", "inode item of %" PRIu32 " bytes", item.size);
	if (r) {
		err_at_tree(err, op->t->id);
		err_at_key(err, &key);
		return r;
	}
	ret->inode = inode;
	memcpy(&ret->item, item.data, sizeof(ret->item));
	return 0;
}

int op_inode_put(struct op *op, struct op_inode *in, struct btrkit_error *err)
{
	in->item.transid = le64_put(op->txn->generation);
	in->item.sequence = le64_put(le64_get(in->item.sequence) + 1);
	return delayed_replace(op->t, &KEY(in->inode, KEY_INODE_ITEM, 0), &in->item, sizeof(in->item), err);
}

int op_check_owner(uint32_t uid, uint32_t gid, struct btrkit_error *err)
{
	if (uid == UINT32_MAX || gid == UINT32_MAX)
		return err_set(err, BTRKIT_INVALID, "invalid user or group id %" PRIu32, UINT32_MAX);
	return 0;
}

int op_check_time(const struct btrkit_time *time, struct btrkit_error *err)
{
	return time->nsec < NSEC_PER_SEC ?
		       0 :
		       err_set(err, BTRKIT_INVALID, "invalid time: %" PRIu32 " nanoseconds", time->nsec);
}

int op_check_is_dir(const struct op_inode *dir, struct btrkit_error *err)
{
	return S_ISDIR(op_inode_mode(dir)) ? 0 : err_system(err, ENOTDIR, "inode %" PRIu64, dir->inode);
}

int op_check_writable(const struct op *op, struct btrkit_error *err)
{
	return op->t->read_only ? err_system(err, EROFS, "subvolume %" PRIu64, op->t->id) : 0;
}

int op_check_fixed(const struct op_inode *in, struct btrkit_error *err)
{
	const uint64_t flags = le64_get(in->item.flags);

	if (flags & (INODE_IMMUTABLE | INODE_APPEND))
		return err_system(err, EPERM, "inode %" PRIu64 " is %s", in->inode,
				  flags & INODE_IMMUTABLE ? "immutable" : "append-only");
	return 0;
}

int op_check_dir(const struct op *op, const struct op_inode *dir, uint64_t forbidden, struct btrkit_error *err)
{
	const uint64_t flags = le64_get(dir->item.flags);
	int ret = op_check_is_dir(dir, err);

	if (!ret && flags & INODE_IMMUTABLE)
		ret = err_system(err, EPERM, "directory %" PRIu64 " is immutable", dir->inode);
	if (!ret)
		ret = op_check_writable(op, err);
	if (!ret && flags & forbidden)
		ret = err_system(err, EPERM, "directory %" PRIu64 " is append-only", dir->inode);
	return ret;
}
