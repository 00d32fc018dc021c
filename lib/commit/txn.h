/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_TXN_H
#define BTRKIT_COMMIT_TXN_H

/*
 * A transaction: edits of trees become durable together, or not at all.
 *
 * Edits collect changes of references (refs.h). The commit applies these until nothing is pending: to extent items and
 * their references, the free space tree, block group items and root items. Each step may copy more blocks, but each
 * block is copied only once. Then every private block is sealed and written, and the devices are flushed; the primary
 * superblocks are written and flushed; finally the mirrors are written and flushed.
 */

#include <btrkit/transaction.h>

#include "lib/commit/csums.h"
#include "lib/commit/sync.h"
#include "lib/space/space.h"
#include "lib/tree/edit.h"
#include "lib/tree/failure.h"

struct delayed;
struct tickets;
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
	struct converting *converting; /* see conversion.h; NULL: nothing is converted */
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

/* Creates the state of a new generation, which txn_drop() frees. On failure nothing of it remains. */
int txn_begin(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops all changes: the filesystem is what is on the devices. */
void txn_drop(struct btrkit_txn *txn);

/* Opens a tree for editing. @return as overlay_tree() */
int txn_tree(struct btrkit_txn *txn, uint64_t id, struct edit_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds or drops a reference to file data. A new extent must have been allocated by txn_alloc_data(). */
int txn_change_data_ref(struct btrkit_txn *txn, const struct extent_change *change,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Allocates @min to @max bytes for file data. The caller must add the first reference; otherwise the commit frees it.
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

/* Bytes of memory that the transaction's private blocks and data use, for callers that limit it by commits. */
uint64_t txn_bytes(const struct btrkit_txn *txn);
#endif
