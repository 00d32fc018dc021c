/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_OVERLAY_H
#define BTRKIT_TREE_OVERLAY_H

/*
 * The tree blocks of a transaction, which are private to it. The first edit of a committed block copies it to a new
 * address; then it is changed in memory. While there is an overlay, every reader of the handle sees the transaction:
 * node_get() finds private blocks first, and fs_find_root() and fs->root_tree return the current roots. A cursor that
 * begins at an earlier root still reads the committed tree, because committed blocks never change.
 *
 * Space and references are managed through overlay_ops.
 */

#include <pthread.h>

#include "lib/base/sort.h"
#include "lib/format/items/extent.h"
#include "lib/tree/cursor.h"
#include "lib/tree/failure.h"
#include "lib/tree/filesystem.h"

/* Adds references to an extent (@add > 0), or drops them (@add < 0). */
struct extent_change {
	uint64_t bytenr, num_bytes;
	bool data;	   /* file data; false: a tree block */
	uint8_t level;	   /* of a tree block */
	/*
	 * type: KEY_TREE_BLOCK_REF (root), KEY_SHARED_BLOCK_REF (parent), KEY_EXTENT_DATA_REF (root, objectid, offset)
	 * or KEY_SHARED_DATA_REF (parent); count is not used.
	 */
	struct extent_ref ref;
	int32_t add;
	bool last; /* of a tree block: this was assumed to be the only reference, and must be */
};

/* Callbacks. They are called during an edit, so they must not edit trees. */
struct overlay_ops {
	/*
	 * Allocate a block of tree @owner, whose first key will be @first (NULL: none), and add a TREE_BLOCK_REF of
	 * @owner.
	 */
	int (*alloc)(void *ctx, uint64_t owner, unsigned level, const struct btrkit_key *first, uint64_t *bytenr,
		     struct btrkit_error *err);
	/* Number of references to a block, and its EXTENT_FLAG_*, including pending changes. */
	int (*lookup)(void *ctx, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
		      struct btrkit_error *err);
	int (*change)(void *ctx, const struct extent_change *change, struct btrkit_error *err);
	/* Set EXTENT_FLAG_FULL_BACKREF. */
	int (*set_full_backref)(void *ctx, uint64_t bytenr, unsigned level, struct btrkit_error *err);
};

/* A tree opened for editing: see edit.h. */
struct edit_tree {
	struct overlay *overlay;
	struct cursor c;	 /* reads the current tree, with the functions of cursor.h */
	uint64_t last_snapshot;	 /* generation; blocks of it or earlier ones may be shared */
	/*
	 * Each snapshot begins an era of the transaction. Private blocks of eras before that of the tree may be shared
	 * with its snapshot, or with its source.
	 */
	uint32_t era;
	bool shareable;		 /* a file tree: snapshots may share its blocks */
	bool fresh;		 /* has no ROOT_ITEM yet */
	bool changed;		 /* root or number of blocks, since this was last cleared */
	bool touched;		 /* an inode has changed since the root item was written */
	int64_t blocks;		 /* allocated minus freed in the transaction, since the root item was written */
	uint64_t private;	 /* blocks that need not be copied again */
	uint64_t private_inner;	 /* of these, inner nodes */
	struct edit_tree *next;
};

struct overlay {
	struct btrkit_fs *fs;
	uint64_t generation; /* of the transaction */
	const struct overlay_ops *ops;
	void *ctx;
	struct node *nodes; /* private blocks, by address */
	struct node *dead;  /* private blocks that were freed; kept because cursors may use them */
	size_t num_nodes;
	size_t num_away;       /* of these, put away and not brought back */
	struct node *young;    /* leaves of file trees in order of creation, without those that were taken */
	size_t num_young;
	pthread_mutex_t back;  /* brings back one block at a time */
	struct edit_tree *trees;
	struct tree_root root_tree, chunk_tree; /* as committed */
	uint32_t era;				/* number of snapshots made */
	uint64_t copied;			/* blocks copied for edits */
	uint64_t created;			/* new blocks */
	uint64_t freed;				/* blocks dropped by trees, including private ones */
	uint64_t edits; /* number of changes that have begun: while it stays, no tree and no reference changes */
	struct known_bad *bad;	 /* items that may stand */
	struct failure *failure; /* set if a tree may be half changed */
};

/*
 * Begins a transaction's view of @fs, and set fs->overlay. Existing cursors must have been released. What fails half
 * way is recorded in @failure.
 * @return 0 or -ENOMEM
 */
int overlay_create(struct btrkit_fs *fs, uint64_t generation, const struct overlay_ops *ops, void *ctx,
		   struct failure *failure, struct overlay **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops it and its blocks, so that @fs is as before. NULL is allowed. */
struct overlay *overlay_abort(struct overlay *o);
/* The transaction is durable: move its blocks, which must be sealed, to the shared cache. The caller sets fs->super. */
struct overlay *overlay_commit(struct overlay *o);

/*
 * Calls the callbacks. If one that changes something fails, an edit is half done, which is recorded; of a look-up only
 * the caller knows. @return what the callback returns
 */
int overlay_alloc_block(struct overlay *o, uint64_t owner, unsigned level, const struct btrkit_key *first,
			uint64_t *bytenr, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int overlay_lookup_refs(struct overlay *o, uint64_t bytenr, unsigned level, uint64_t *refs, uint64_t *flags,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
int overlay_change_ref(struct overlay *o, const struct extent_change *change,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
int overlay_set_full_backref(struct overlay *o, uint64_t bytenr, unsigned level,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Opens a tree for editing, or returns the open one. @return 0; -ENOENT; <0 */
int overlay_tree(struct overlay *o, uint64_t id, struct edit_tree **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Like overlay_tree(), for a tree that may be absent. @return 0; 1: no such tree, with no error reported; <0 */
int overlay_try_tree(struct overlay *o, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Creates a tree with one empty leaf. The caller inserts its ROOT_ITEM. */
int overlay_new_tree(struct overlay *o, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Like overlay_new_tree(), for a tree of @blocks blocks that was built by bulk.h: they are on the devices and not
 * private.
 */
int overlay_adopt_tree(struct overlay *o, const struct tree_root *root, uint64_t blocks, struct edit_tree **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In edit_cow.c: */
/*
 * Creates a tree @id that shares all blocks of @source except for the root, which has the same items. The caller
 * inserts its ROOT_ITEM, and sets the last snapshot of both root items to the generation of the transaction.
 *
 * The key offset tells those who delete the tree that blocks up to that generation were not created by it. It is the
 * previous generation: after a snapshot in the middle of a transaction, both trees create blocks of the same
 * generation.
 */
int overlay_snapshot(struct edit_tree *source, uint64_t id, struct edit_tree **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In overlay.c: */
/* The root of a tree before the transaction. @return as fs_find_root() */
int overlay_committed_root(struct overlay *o, uint64_t id, struct tree_root *ret,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The private block at an address, or NULL. */
struct node *overlay_find(const struct overlay *o, uint64_t bytenr);
/* The tree, if it is open for editing, or NULL. */
struct edit_tree *overlay_open_tree(const struct overlay *o, uint64_t id);

/* In overlay_away.c: */
/*
 * Full leaves need not stay in memory until the commit. A caller that has locked the trees may take up to @n of them,
 * except for the latest @keep leaves. Each is returned only once. @return how many
 */
size_t overlay_take_full(struct overlay *o, size_t keep, struct sort_entry *ret, size_t n);
/*
 * Frees the memory of leaves that were taken, sealed and written. They remain private: node_get() brings one back when
 * it is needed, and then it stays. No cursors may be there except those of the open trees, which are released.
 */
void overlay_put_away(struct overlay *o, const struct sort_entry *leaves, size_t n);
/* Reads a leaf that was put away. Thread-safe. @return 0, -EUCLEAN, -EIO, -ENXIO, -ENOMEM */
int overlay_bring_back(struct overlay *o, struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Number of private blocks in memory. */
size_t overlay_in_memory(const struct overlay *o);

/* In overlay.c: */
/* All @n private blocks in memory in address order, each a struct node. The caller frees @ret. */
int overlay_blocks(const struct overlay *o, struct sort_entry **ret, size_t *n,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Fills in the header and checksum of a private block, and verifies it and all its items as after reading. Threads may
 * call this for different blocks at once. @return 0; -EUCLEAN
 */
int overlay_seal(const struct overlay *o, struct node *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
