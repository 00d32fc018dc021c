/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TRANSACTION_H
#define BTRKIT_TRANSACTION_H

/**
 * @file
 * Changing a filesystem: in transactions, of which all becomes durable or nothing.
 *
 * The handle must have been opened with BTRKIT_OPEN_WRITE. It has one transaction at a time. While one is open, readers
 * of the same handle see what it has changed; a crash, a kill or btrkit_txn_abort() leaves the filesystem as it was.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

struct btrkit_txn;

/** What a commit came to. Since: 0.1 */
enum btrkit_commit_state {
	BTRKIT_COMMIT_OLD,	/**< the filesystem is as it was before the transaction */
	BTRKIT_COMMIT_NEW,	/**< the transaction is durable */
	BTRKIT_COMMIT_UNKNOWN	/**< the primary superblock could not be written or flushed: either of the two */
};

/** What was written through a handle, over all transactions. Since: 0.1 */
struct btrkit_write_stats {
	uint64_t commits;
	uint64_t nodes_copied;		/**< tree blocks copied before their first edit in a transaction */
	uint64_t nodes_created;
	uint64_t ref_batches;		/**< batches of delayed references */
	uint64_t ref_batch_log2[24];	/**< how many batches had 2^i to 2^(i+1)-1 extents */
	uint64_t refs_queued;		/**< changes of references */
	uint64_t refs_netted;		/**< of those, how many cancelled out or were joined with another */
	uint64_t refs_applied;		/**< extents whose item was changed, made or deleted */
	uint64_t free_space_ranges;	/**< changes applied to the free space tree */
	uint64_t free_space_conversions; /**< block groups that changed between extents and bitmaps */
	uint64_t free_space_ns;		/**< time spent on the free space tree and on counters of block groups */
	uint64_t commit_ns;		/**< time spent in commits */
	uint64_t barriers;		/**< flushes of a device */
	uint64_t bytes_written;		/**< to all devices */
	uint64_t writes;		/**< calls */
};

/**
 * Begins a transaction.
 *
 * The first one of a handle writes mirrors of the superblock anew that a crash has left behind, or has torn, if any.
 *
 * @return 0; -EROFS: not opened for writing, or an earlier commit failed; -EBUSY: there is one already, or a superblock
 *	   is not what it was when the filesystem was opened; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_start(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes it durable, and frees it whatever is returned. A transaction that changed nothing writes nothing.
 *
 * After a failure the handle refuses further transactions.
 *
 * @param state	which state the filesystem is in now; may be NULL
 * @return 0; -ENOSPC, -EUCLEAN, -EIO, -ENOMEM; -EINVAL: a change failed half way, so that it can only be dropped
 * Since: 0.1
 */
int btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Drops it with all its changes, and frees it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_txn *btrkit_txn_abort(struct btrkit_txn *txn);

/** Fills in @p stats: zeros for a handle that was opened for reading. Since: 0.1 */
void btrkit_fs_get_write_stats(const struct btrkit_fs *fs, struct btrkit_write_stats *stats);

BTRKIT_END_DECLS

#endif
