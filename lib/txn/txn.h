/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_TXN_H
#define BTRKIT_TXN_TXN_H

/*
 * A transaction: edits of trees become durable together, or not at all.
 *
 * Edits collect changes of references (refs.h). The commit applies these until nothing is pending: to extent items and
 * their references, the free space tree, block group items and root items. Each step may copy more blocks, but each
 * block is copied only once. Then every private block is sealed and written, and the devices are flushed; the primary
 * superblocks are written and flushed; finally the mirrors are written and flushed.
 */

#include <btrkit/transaction.h>

#include "lib/space/space.h"
#include "lib/tree/edit.h"
#include "lib/tree/failure.h"
#include "lib/txn/csums.h"
#include "lib/txn/sync.h"

struct delayed;
struct delayed_amount;
struct tickets;
struct ticket_need;
struct refs;
struct txn_data;

/* State of a write handle that is kept from one transaction to the next: fs->writer. */
struct writer {
	struct btrkit_fs *fs;
	struct space *space;
	struct btrkit_txn *txn; /* the open one, or NULL */
	struct btrkit_write_stats stats;
	uint64_t next_root; /* greater than all subvolume IDs allocated so far, or 0 */
	bool level;  /* all superblock mirrors match the primary superblocks */
	struct failure failure; /* of the open transaction, or of a commit: then further writes are refused */
};

struct btrkit_txn {
	struct btrkit_fs *fs;
	struct writer *writer;
	struct txn_sync sync;
	struct failure *failure; /* that of the writer; once it is set, the transaction can only be aborted */
	struct overlay *overlay;
	struct space *space;
	struct refs *refs;
	struct delayed *delayed; /* items not inserted into file trees yet */
	struct tickets *tickets; /* space reserved for these */
	struct csums csums;    /* checksums not inserted into their tree yet */
	struct txn_data *data; /* kept in memory until the commit writes it */
	uint64_t data_bytes;   /* memory used by that */
	uint64_t early_bytes;  /* size of blocks in memory from which on full leaves are written early */
	struct disk_super super; /* what the commit will write; changes of features and chunks are made here */
	uint64_t generation;
	bool quotas;	   /* qgroups are enabled, and must be marked when they become inconsistent */
	bool simple_quota; /* simple quotas are enabled: references of files must not change */
	/*
	 * Whether the free space tree is kept up to date. False if there is none, if it is not valid, and until it has
	 * been built. Code that builds it sets this after adopting the tree, and must have applied all references
	 * before.
	 */
	bool free_space_tree;
	/*
	 * Called when everything except the superblocks is durable. If it fails, the commit fails and the old state
	 * remains. During the call, trees read through @fs come from the devices. May be NULL.
	 */
	int (*verify)(void *ctx, struct btrkit_txn *txn, struct btrkit_error *err);
	void *verify_ctx;
};

/* Open a tree for editing. @return as overlay_tree() */
int txn_tree(struct btrkit_txn *txn, uint64_t id, struct edit_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Add or drop a reference to file data. A new extent must have been allocated by txn_alloc_data(). */
int txn_change_data_ref(struct btrkit_txn *txn, const struct extent_change *change,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Allocate @min to @max bytes for file data. The caller must add the first reference; otherwise the commit frees it.
 * @return 0; -ENOSPC; -EUCLEAN: the space is in use; <0
 */
int txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Allocates exactly @r for file data whose address is known and which is on the devices already: see
 * space_alloc_exact(). The caller must add the first reference, as for txn_alloc_data().
 * @return as space_alloc_exact(); also -EUCLEAN: the range is not in a group for data, or without a free space tree the
 * checksum tree says that it is in use
 */
int txn_alloc_data_exact(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * With mixed block groups: reduce *@max so that the space reserved for tree blocks remains free. Otherwise do nothing.
 * @return 0; -ENOSPC: not even @min; <0
 */
int txn_spare_mixed(struct btrkit_txn *txn, uint64_t min, uint64_t *max, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Makes a group read-only by space_inc_ro(), and makes sure that what was reserved can still be allocated elsewhere,
 * with new chunks if necessary. To be taken back by space_dec_ro(). Not during an edit.
 * @return 0; -ENOSPC: the group is as before, with at most an additional empty chunk; <0
 */
int txn_inc_ro(struct btrkit_txn *txn, struct space_group *g, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Allocate a data chunk. Not during an edit. @return 0; -ENOSPC; <0 */
int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Write data to space that txn_alloc_data() returned in this transaction. In chunks with parity the commit writes it;
 * until then the data is kept in memory, and included in txn_bytes(). Nothing is written if a superblock is no longer
 * that of the last commit.
 * @return 0; -EBUSY: another program has written to the filesystem; <0: the transaction can only be aborted
 */
int txn_write_data(struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Read data that was written in this transaction and is still kept in memory. *@len is reduced to the number of bytes
 * from @logical on that are either all kept, and then copied to @buf, or all on the devices.
 * @return whether they are kept
 */
bool txn_read_kept(const struct btrkit_txn *txn, uint64_t logical, void *buf, size_t *len);

/*
 * Make sure that @blocks tree blocks can be allocated in addition to those needed so far, including those of the
 * commit. New metadata chunks are allocated if necessary. Not during an edit.
 * @return 0; -ENOSPC: the transaction can continue, with at most an additional empty chunk; <0
 */
int txn_reserve(struct btrkit_txn *txn, uint64_t blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

enum txn_chunks {
	TXN_NO_CHUNKS,
	TXN_CHUNKS_OF_PLENTY, /* only if most of the devices is unallocated */
	TXN_CHUNKS
};
/*
 * The same for delayed changes of items in file trees: @all of them, including those of @need, which may use the space
 * kept for Linux if it removes things. *@credit is reserved in addition, and reduced to what there is space for.
 */
int txn_reserve_items(struct btrkit_txn *txn, const struct delayed_amount *all, const struct ticket_need *need,
		      struct delayed_amount *credit, enum txn_chunks chunks,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Commit, and continue as the next transaction. Not by a thread inside the gate.
 * @return 0; <0: as after a failed commit, the transaction can only be aborted
 */
int txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same for a thread with exclusive use: see sync.h. */
int txn_commit_alone(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Update the ROOT_ITEM of a tree, as the commit does. Not during an edit. */
int txn_write_root(struct btrkit_txn *txn, struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Apply references until none are pending, without updating root items. Needed before a whole tree is read that must be
 * up to date. Waiting checksums are inserted first, so that those of freed extents can be deleted. Not during an edit.
 */
int txn_run_refs(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes of memory that the transaction's private blocks and data use, for callers that limit it by commits. */
uint64_t txn_bytes(const struct btrkit_txn *txn);
/*
 * Write full leaves if blocks use much memory; nothing on the devices refers to them before the commit. The trees must
 * be locked, and only cursors of edits may point into them.
 * @return 0; -EBUSY: as txn_write_data(); <0: the transaction can only be aborted
 */
int txn_write_early(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
