/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_OVERLAY_H
#define BTRKIT_TREE_OVERLAY_H

/*
 * The tree blocks of a transaction, private to it. The first edit of a committed block copies it to a new place; from
 * then on it is changed in memory. As long as there is an overlay every reader of the handle sees the transaction:
 * node_get() finds private blocks first, fs_find_root() and fs->root_tree tell the roots as they are now. Who begins a
 * cursor at a root of before still walks the committed tree, since no committed block is ever changed.
 *
 * Space and references are somebody else's: overlay_ops tells whose.
 */

#include <pthread.h>

#include "lib/base/sort.h"
#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"
#include "lib/tree/filesystem.h"

/* References to an extent that are added (@add above 0) or dropped (below). */
struct extent_change {
	uint64_t bytenr, num_bytes;
	bool data;	   /* file data; else a tree block */
	uint8_t level;	   /* of a tree block */
	/*
	 * type: KEY_TREE_BLOCK_REF (root), KEY_SHARED_BLOCK_REF (parent), KEY_EXTENT_DATA_REF (root, objectid, offset)
	 * or KEY_SHARED_DATA_REF (parent); count is not used.
	 */
	struct extent_ref ref;
	int32_t add;
	bool last; /* of a tree block: what is dropped was taken for the only one, and has to be */
};

/*
 * None of these edits a tree: they are called in the middle of an edit.
 */
struct overlay_ops {
	/*
	 * A place for a new block of tree @owner, whose first key will be @first (NULL: it has none), and a
	 * TREE_BLOCK_REF of @owner to it.
	 */
	int (*alloc)(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		     struct btrkit_error *err);
	/* How many references there are to a block, and its EXTENT_FLAG_*, with what is pending. */
	int (*lookup)(void *ctx, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
		      struct btrkit_error *err);
	int (*change)(void *ctx, const struct extent_change *change, struct btrkit_error *err);
	/* Sets EXTENT_FLAG_FULL_BACKREF. */
	int (*set_full_backref)(void *ctx, uint64_t bytenr, unsigned level, struct btrkit_error *err);
};

/* A tree that is open for editing: see edit.h. */
struct edit_tree {
	struct overlay *overlay;
	struct cursor c;	 /* reads the tree as it is now, with the functions of cursor.h */
	uint64_t last_snapshot;	 /* generation; blocks up to it may be shared */
	/*
	 * Each snapshot begins an era of the transaction. Private blocks of eras before the tree's may be shared by
	 * what it was snapshotted to, or from.
	 */
	uint32_t era;
	bool shareable;		 /* a tree of files: snapshots share its blocks */
	bool fresh;		 /* has no ROOT_ITEM yet */
	bool changed;		 /* since this was last set to false: its root, or the number of its blocks */
	bool touched;		 /* since the root item was written: an inode */
	int64_t blocks;		 /* allocated in the transaction less those freed, since the root item was written */
	uint64_t private;	 /* blocks that need not be copied any more */
	uint64_t private_inner;	 /* of these, not leaves */
	struct edit_tree *next;
};

struct overlay {
	struct btrkit_fs *fs;
	uint64_t generation; /* of the transaction */
	const struct overlay_ops *ops;
	void *ctx;
	struct node *nodes; /* private ones, by address */
	struct node *dead;  /* private ones that were freed again; kept, for cursors may stand there */
	size_t num_nodes;
	size_t num_away;       /* of these, put away and not brought back */
	struct node *young;    /* leaves of trees of files in the order in which they came, but those that were taken */
	size_t num_young;
	pthread_mutex_t back;  /* one block at a time is brought back */
	struct edit_tree *trees;
	struct tree_root root_tree, chunk_tree; /* as committed */
	uint32_t era;				/* snapshots that were made */
	uint64_t copied;			/* blocks that were copied for an edit */
	uint64_t created;			/* blocks that are new */
	uint64_t freed;				/* blocks that a tree has dropped, private ones too */
	bool failed; /* a tree may be half changed: nothing of this is to be committed */
};

/*
 * Begins a transaction's view of @fs, which gets the pointer. Cursors that were begun before must have been released.
 * @return 0 or -ENOMEM
 */
int overlay_create(struct btrkit_fs *fs, uint64_t generation, const struct overlay_ops *ops, void *ctx,
		   struct overlay **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops it with its blocks: @fs is as it was before. NULL is allowed. */
struct overlay *overlay_abort(struct overlay *o);
/*
 * The transaction is durable: its blocks, which must be sealed, become part of the shared cache. fs->super is the
 * caller's to set.
 */
struct overlay *overlay_commit(struct overlay *o);

/* Opens a tree for editing; a second time it is the same. @return 0; -ENOENT; <0 */
int overlay_tree(struct overlay *o, uint64_t id, struct edit_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of a tree that need not be there. @return 0; 1: no such tree, of which nothing is told; <0 */
int overlay_try_tree(struct overlay *o, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A tree that there was not before: of one empty leaf. Its ROOT_ITEM is whoever's calls this. */
int overlay_new_tree(struct overlay *o, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of a tree that was built by bulk.h, of @blocks blocks: they are on the device and not private. */
int overlay_adopt_tree(struct overlay *o, const struct tree_root *root, uint64_t blocks, struct edit_tree **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * A tree @id that shares all blocks of @source but its root, which has the same items. Its ROOT_ITEM is the caller's,
 * and so is it that both root items name the transaction's generation as that of the last snapshot.
 *
 * The key's offset tells who drops the tree that blocks up to that generation were not made by it. It is the generation
 * before: after a snapshot in the middle of a transaction both trees make blocks of the same.
 */
int overlay_snapshot(struct edit_tree *source, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The root of a tree before the transaction. @return as fs_find_root() */
int overlay_committed_root(struct overlay *o, uint64_t id, struct tree_root *ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The private block at an address, or NULL. */
struct node *overlay_find(const struct overlay *o, uint64_t bytenr);
/* The tree that is open for editing, or NULL. */
struct edit_tree *overlay_open_tree(const struct overlay *o, uint64_t id);

/*
 * Full leaves need not stay in memory until the commit. Who has the trees to himself may take those that came before
 * the latest @keep leaves, up to @n of them; each is told of once. @return how many
 */
size_t overlay_take_full(struct overlay *o, size_t keep, struct sort_entry *ret, size_t n);
/*
 * Leaves that were taken, sealed and written to their places give their memory back. They are still private: node_get()
 * brings one back when it is wanted, and then it stays. No cursor may stand there but those of the trees that are open
 * for editing, which are released.
 */
void overlay_put_away(struct overlay *o, const struct sort_entry *leaves, size_t n);
/* Reads what was put away, by any number of threads. @return 0, -EUCLEAN, -EIO, -ENODATA, -ENOMEM */
int overlay_bring_back(struct overlay *o, struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Private blocks that are in memory. */
size_t overlay_in_memory(const struct overlay *o);

/* All private blocks in memory by address: @n of them, each a struct node; @ret is the caller's to free. */
int overlay_blocks(const struct overlay *o, struct sort_entry **ret, size_t *n,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Fills in header and checksum of a private block, and judges it and all its items as after a read. May be called by
 * many threads for different blocks. @return 0; -EUCLEAN
 */
int overlay_seal(const struct overlay *o, struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
