/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TRANSACTION_H
#define BTRKIT_TRANSACTION_H

/**
 * @file
 * Changing a filesystem: in transactions, of which all becomes durable or nothing.
 *
 * The handle must have been opened with BTRKIT_OPEN_WRITE. It has one transaction at a time. While one is open, who
 * reads by the same handle sees what it has changed and flushed (modify.h), but must not do so while something is
 * changed: what is read then is half old and half new, and may be told as damage. A crash, a kill or btrkit_txn_abort()
 * leaves the filesystem as it was.
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

/** Batches in which items were put into trees. Since: 0.1 */
struct btrkit_batches {
	uint64_t batches;
	uint64_t items;		/**< in all of them */
	uint64_t log2[24];	/**< how many had 2^i to 2^(i+1)-1 items */
};

/**
 * What was written through a handle, over all transactions: for who measures. It tells how this release works; what a
 * later one does not do any more it counts as 0.
 *
 * Since: 0.1
 */
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
	struct btrkit_batches index_batches;	/**< of index items of directories */
	struct btrkit_batches item_batches;	/**< of other new items of trees of files */
	uint64_t reserved[8];	/**< 0 */
};

/** Buckets of a histogram of times. Since: 0.1 */
#define BTRKIT_RESERVE_BUCKETS 40

/**
 * How operations got the space that they reserve before they change anything: for who measures, as struct
 * btrkit_write_stats.
 *
 * Since: 0.1
 */
struct btrkit_reserve_stats {
	uint64_t reservations;	/**< that were granted */
	uint64_t refused;	/**< that ended with -ENOSPC */
	/** How many took 2^i to 2^(i+1)-1 nanoseconds, waiting and reclaiming included. */
	uint64_t latency_log2[BTRKIT_RESERVE_BUCKETS];
	uint64_t tickets;	/**< that had to queue */
	uint64_t item_runs;	/**< how often the first in the queue had delayed items put into the trees, */
	uint64_t ref_runs;	/**< delayed references applied, */
	uint64_t chunks;	/**< a chunk added if there was room for one, */
	uint64_t commits;	/**< the transaction committed */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Begins a transaction.
 *
 * The first one of a handle writes mirrors of the superblock anew that a crash has left behind, or has torn, if any.
 *
 * @return 0; -EROFS: not opened for writing, or an earlier commit failed, whose first error is told with its places;
 *	   -EBUSY: there is one already, or a superblock is not what it was when the filesystem was opened; -EUCLEAN,
 *	   -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_start(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes it durable, and frees it whatever is returned. A transaction that changed nothing writes nothing.
 *
 * After a failure the handle refuses further transactions.
 *
 * @param state	which state the filesystem is in now; may be NULL
 * @return 0; -ENOSPC, -EUCLEAN, -EIO, -ENOMEM; -EINVAL: a change failed half way, so that it can only be dropped;
 *	   what an operation or a commit in between has failed of, told again
 * Since: 0.1
 */
int btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Whether the transaction may be committed before its end, when space is short that only a commit makes free: what was
 * freed can be used by the next one only. What was done so far is durable then, and the transaction goes on. At first
 * it may not. Not while others work in it.
 *
 * @param may	whether it may
 * Since: 0.1
 */
void btrkit_txn_set_may_commit(struct btrkit_txn *txn, bool may);

/** Drops it with all its changes, and frees it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_txn *btrkit_txn_abort(struct btrkit_txn *txn);

/** Fills in @p stats: of this transaction, which may be open. Since: 0.1 */
void btrkit_txn_get_reserve_stats(struct btrkit_txn *txn, struct btrkit_reserve_stats *stats);

/** Fills in @p stats: zeros for a handle that was opened for reading. Since: 0.1 */
void btrkit_fs_get_write_stats(const struct btrkit_fs *fs, struct btrkit_write_stats *stats);

BTRKIT_END_DECLS

#endif
