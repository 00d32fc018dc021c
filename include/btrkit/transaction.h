/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TRANSACTION_H
#define BTRKIT_TRANSACTION_H

/**
 * @file
 * Transactions: groups of changes that become durable completely or not at all.
 *
 * The handle must have been opened with BTRKIT_OPEN_WRITE, and has at most one transaction at a time. While one is
 * open, functions that read through the same handle see what it has changed and flushed (modify.h). They must not run
 * while something is being changed: they would find half-changed trees, and might report corruption. References to
 * extents reach the extent tree only with the commit, so functions that need that tree fail with -EBUSY while a
 * transaction is open, even if it has changed nothing; the comments on these functions say so. A crash, a killed
 * process or btrkit_txn_abort() leaves the filesystem as it was before the transaction.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

struct btrkit_txn;

/** State of the filesystem after a commit. Since: 0.1 */
enum btrkit_commit_state {
	BTRKIT_COMMIT_OLD,	/**< as before the transaction */
	BTRKIT_COMMIT_NEW,	/**< the transaction is durable */
	BTRKIT_COMMIT_UNKNOWN	/**< either of them: writing or flushing the primary superblock failed */
};

/** Batches in which items were inserted into trees. Since: 0.1 */
struct btrkit_batches {
	uint64_t batches;
	uint64_t items;		/**< in all batches */
	uint64_t log2[24];	/**< [i]: batches of 2^i to 2^(i+1)-1 items */
};

/**
 * Statistics of all writes through a handle, for benchmarks. They describe the workings of this release; a later
 * release reports 0 for what it no longer does.
 *
 * Since: 0.1
 */
struct btrkit_write_stats {
	uint64_t commits;
	uint64_t nodes_copied;		/**< tree blocks copied before their first change in a transaction */
	uint64_t nodes_created;
	uint64_t ref_batches;		/**< batches of delayed references */
	uint64_t ref_batch_log2[24];	/**< [i]: batches of 2^i to 2^(i+1)-1 extents */
	uint64_t refs_queued;		/**< changes of reference counts */
	uint64_t refs_netted;		/**< of these, those that cancelled out or were merged */
	uint64_t refs_applied;		/**< extents whose extent item was changed, inserted or deleted */
	uint64_t free_space_ranges;	/**< changes of the free space tree */
	uint64_t free_space_conversions; /**< block groups converted between extents and bitmaps */
	uint64_t free_space_ns;		/**< spent on the free space tree and block group items, in nanoseconds */
	uint64_t commit_ns;		/**< spent in commits, in nanoseconds */
	uint64_t barriers;		/**< flushes of devices */
	uint64_t bytes_written;		/**< to all devices */
	uint64_t writes;		/**< write calls */
	struct btrkit_batches index_batches;	/**< directory index items */
	struct btrkit_batches item_batches;	/**< other new items of file trees */
	uint64_t reserved[8];	/**< 0 */
};

/** Number of buckets of a latency histogram. Since: 0.1 */
#define BTRKIT_RESERVE_BUCKETS 40

/**
 * Statistics of space reservations, which precede every change; for benchmarks, like struct btrkit_write_stats.
 *
 * Since: 0.1
 */
struct btrkit_reserve_stats {
	uint64_t reservations;	/**< granted */
	uint64_t refused;	/**< refused with -ENOSPC */
	/** [i]: reservations that took 2^i to 2^(i+1)-1 nanoseconds, waiting and reclaiming included. */
	uint64_t latency_log2[BTRKIT_RESERVE_BUCKETS];
	uint64_t tickets;	/**< reservations that had to queue */
	uint64_t item_runs;	/**< times that the first in the queue had delayed items inserted, */
	uint64_t ref_runs;	/**< delayed references applied, */
	uint64_t chunks;	/**< a chunk allocated if possible, and */
	uint64_t commits;	/**< the transaction committed */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Starts a transaction.
 *
 * The first transaction of a handle rewrites superblock mirrors that a crash left torn or outdated.
 *
 * @param ret	receives the transaction; it ends with btrkit_txn_commit() or btrkit_txn_abort()
 * @return 0; -EROFS: not opened for writing, or an earlier commit failed, whose first error is reported with its
 *	   location; -EBUSY: a transaction is open already, or a superblock was changed since the filesystem was opened;
 *	   -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_start(struct btrkit_fs *fs, struct btrkit_txn **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Commits a transaction, that is, makes it durable, and frees it, even if it fails. A transaction without changes
 * writes nothing.
 *
 * After a failure the handle refuses further transactions.
 *
 * @param state	receives the state of the filesystem, also after a failure; may be NULL
 * @return 0; -ENOSPC; -EBUSY: a superblock was changed since the filesystem was opened; -EOPNOTSUPP: files were changed
 *	   while simple quotas are on; -EINVAL: an earlier change failed half way; the error of an earlier operation or
 *	   commit of this transaction; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_commit(struct btrkit_txn *txn, enum btrkit_commit_state *state,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes all changes of a transaction so far durable, and continues it: btrkit_txn_abort() drops only what comes later.
 *
 * Other threads may use the transaction meanwhile. What they have begun is finished first, except that a change that is
 * made in several steps, such as writing much data, may be committed in part; what they begin waits for the commit. An
 * operation is therefore committed if it had returned before this was called. Files that were opened with
 * btrkit_file_open() remain usable as after btrkit_txn_commit().
 *
 * After a failure the transaction can only be aborted, and the handle refuses further ones.
 *
 * @param state	receives the state of the filesystem, also after a failure; may be NULL
 * @return as btrkit_txn_commit()
 * Since: 0.2
 */
int btrkit_txn_commit_and_continue(struct btrkit_txn *txn, enum btrkit_commit_state *state,
				   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Allows or forbids commits before the end of the transaction. They may be needed when space is short, because space
 * that a transaction frees can only be used by the next one. Such a commit makes all changes so far durable, and the
 * transaction continues. Initially forbidden. No other thread may use the transaction meanwhile.
 *
 * @param may	whether to allow them
 * Since: 0.1
 */
void btrkit_txn_set_may_commit(struct btrkit_txn *txn, bool may);

/**
 * Tells whether a transaction has failed, so that it can only be aborted: see modify.h. Any thread may ask at any time.
 *
 * @return 0: it has not; otherwise the negative errno that every other function returns, described in @p err
 * Since: 0.2
 */
int btrkit_txn_failure(struct btrkit_txn *txn, struct btrkit_error *err);

/** Aborts a transaction: drops all its changes and frees it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_txn *btrkit_txn_abort(struct btrkit_txn *txn);

/** Returns the reservation statistics of this transaction, which may be in use, in @p stats. Since: 0.1 */
void btrkit_txn_get_reserve_stats(struct btrkit_txn *txn, struct btrkit_reserve_stats *stats);

/** Returns the write statistics of a handle in @p stats; zeros if it was opened for reading. Since: 0.1 */
void btrkit_fs_get_write_stats(const struct btrkit_fs *fs, struct btrkit_write_stats *stats);

BTRKIT_END_DECLS

#endif
