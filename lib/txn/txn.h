/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_TXN_H
#define BTRKIT_TXN_TXN_H

/*
 * A transaction: edits of trees become durable together, or not at all.
 *
 * Edits collect changes of references (refs.h). The commit runs these to a fixed point: extent items and their
 * references, the free space tree, the groups' counters, the root items; each may copy more blocks, each block once.
 * Then every private block is sealed and written, the devices are flushed, the primary superblock is written, the
 * devices are flushed, the mirrors are written, and the devices are flushed.
 */

#include <btrkit/transaction.h>

#include "lib/space/space.h"
#include "lib/tree/edit.h"
#include "lib/txn/csums.h"

struct delayed;
struct ticket_amount;
struct ticket_need;
struct refs;
struct txn_data;

/* What a write handle keeps from one transaction to the next: fs->writer. */
struct writer {
	struct btrkit_fs *fs;
	struct space *space;
	struct btrkit_txn *txn; /* the one that is open, or NULL */
	struct btrkit_write_stats stats;
	uint64_t next_root; /* above all numbers that subvolumes got, or 0 */
	bool level;  /* all mirrors are those of the primary superblock */
	bool broken; /* a commit failed: no more writes */
	struct btrkit_error why; /* as it told first */
};

struct btrkit_txn {
	struct btrkit_fs *fs;
	struct writer *writer;
	struct overlay *overlay;
	struct space *space;
	struct refs *refs;
	struct delayed *delayed; /* items that wait to go into trees of files */
	struct csums csums;    /* that wait to go into their tree */
	struct txn_data *data; /* that the commit writes */
	uint64_t data_bytes;   /* of memory for it */
	uint64_t early_bytes;  /* of blocks in memory: from there on leaves that are full are written */
	struct disk_super super; /* the one that the commit will write; who changes features or chunks does it here */
	uint64_t generation;
	bool failed;	   /* an edit failed half way: it can only be aborted */
	bool quotas;	   /* are counted, and have to be told when they are no longer right */
	bool simple_quota; /* what files refer to must not change: that would have to be accounted */
	/*
	 * The free space tree is kept up. It is not where there is none, where it is not valid, or until it is built. A
	 * builder of it sets this after having adopted the tree, and must have run references to the end before.
	 */
	bool free_space_tree;
	/*
	 * Called when everything but the superblock is durable; a failure stops the commit, and the old state holds.
	 * Trees read through @fs then come from the device. May be NULL.
	 */
	int (*verify)(void *ctx, struct btrkit_txn *txn, struct btrkit_error *err);
	void *verify_ctx;
};

/* A tree for editing. @return as overlay_tree() */
int txn_tree(struct btrkit_txn *txn, uint64_t id, struct edit_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A reference to file data comes or goes. A new extent must have been allocated by txn_alloc_data(). */
int txn_change_data_ref(struct btrkit_txn *txn, const struct extent_change *change,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * A place for file data, of @min to @max bytes; its first reference is the caller's to add, or it is given back by the
 * commit. @return 0; -ENOSPC; -EUCLEAN: there is data already; <0
 */
int txn_alloc_data(struct btrkit_txn *txn, uint64_t min, uint64_t max, struct range *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Where data lies among tree blocks: what of it may be taken, so that trees find what was promised to them. Nothing is
 * changed where it does not. @return 0; -ENOSPC: not even @min; <0
 */
int txn_spare_mixed(struct btrkit_txn *txn, uint64_t min, uint64_t *max, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds a chunk for data. For between edits. @return 0; -ENOSPC; <0 */
int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Writes data to a place that txn_alloc_data() gave in this transaction: where there is parity with the commit, and
 * until then the data is kept, and counted by txn_bytes(). Not where a superblock is no longer that of the last commit.
 * @return 0; -EBUSY: somebody else has written since; <0: the transaction can only be aborted
 */
int txn_write_data(struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Data that was written in this transaction and is still kept. *@len becomes how many bytes from @logical on are alike:
 * kept, and then copied to @buf, or on the devices. @return whether they are kept
 */
bool txn_read_kept(const struct btrkit_txn *txn, uint64_t logical, void *buf, size_t *len);

/*
 * Sees to it that @blocks tree blocks more than are needed so far can be allocated, those of the commit besides, by new
 * chunks of metadata if need be. For between edits, never inside of one.
 * @return 0; -ENOSPC, after which the transaction can go on: at most there is a new chunk, still empty; <0
 */
int txn_reserve(struct btrkit_txn *txn, uint64_t blocks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

enum txn_chunks {
	TXN_NO_CHUNKS,
	TXN_CHUNKS_OF_PLENTY, /* only as long as the devices are mostly free */
	TXN_CHUNKS
};
/*
 * The same for changes of items of trees of files that wait: @all with those of @need, which may remove things and then
 * use what is kept for Linux. @credit besides, or as much of that as there is room for.
 */
int txn_reserve_items(struct btrkit_txn *txn, const struct ticket_amount *all, const struct ticket_need *need,
		      struct ticket_amount *credit, enum txn_chunks chunks, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Commits, and goes on as the next transaction with what waits since. Not by who is in the gate.
 * @return 0; <0: it is as after a failed commit, and can only be aborted
 */
int txn_commit_and_go_on(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same by who is alone: see delayed_close(). */
int txn_commit_alone(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Brings the ROOT_ITEM of a tree up to date, as the commit does. For between edits. */
int txn_write_root(struct btrkit_txn *txn, struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Runs what is pending until nothing is, without root items: before a whole tree is read that must say how it is. For
 * between edits.
 */
int txn_run_refs(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes of memory that the transaction's private blocks and data take: for who commits now and then. */
uint64_t txn_bytes(const struct btrkit_txn *txn);
/*
 * Writes full leaves, if there is much in memory: nothing refers to them on the devices before the commit. With the
 * trees locked; no cursor may stand in them but those of edits. @return 0; -EBUSY: as txn_write_data(); <0: the
 * transaction can only be aborted
 */
int txn_write_early(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
