/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_H
#define BTRKIT_BACKREF_SHARE_H

/*
 * Determines whether Linux reports a data extent of a file as shared. Extent items are read in batches, in the order of
 * their addresses: for one leaf of the file's tree, or if its extents are in quite another order, for many. The results
 * for the blocks between the root and the leaf are cached while neighbouring leaves are visited.
 *
 * The rule of Linux (fs/btrfs/backref.c): an extent is SHARED if it has two references that differ in more than the
 * count, or one that names another inode or tree, or if a leaf that refers to it can be reached from another tree.
 * References of the data relocation tree do not count.
 */

#include "lib/base/sort.h"
#include "lib/format/items/file_extent.h"
#include "lib/tree/cursor.h"

/* A data extent of a batch, and the result of its references. */
struct share_extent {
	uint64_t bytenr;
	uint64_t inode; /* of the file that refers to it */
	bool shared;	/* decided by the references alone */
	/* The only relevant reference, if it is not shared by references alone; type 0: none. */
	uint8_t ref_type; /* KEY_EXTENT_DATA_REF or KEY_SHARED_DATA_REF */
	uint64_t root;	  /* of KEY_EXTENT_DATA_REF */
	uint64_t offset;  /* of KEY_EXTENT_DATA_REF */
	uint64_t parent;  /* of KEY_SHARED_DATA_REF */
	uint32_t count;
	bool lost; /* its references cannot be read */
	/* Cached result for the leaves that refer to it, because an extent in many pieces is checked often. */
	bool leaves_known;
	bool leaves_shared;
};

/* How much a batch looks ahead at most. The last leaf may exceed the number of items. */
#define SHARE_LEAVES 128
#define SHARE_ITEMS 16384

/* The data extents to which the items of some successive leaves refer: none of these leaves is shared. */
struct share_batch {
	struct sort_entry *items;     /* address, inode; what: number of the item in the order of the tree */
	uint32_t *places;	      /* of the extent of each item, in the order of the tree */
	struct share_extent *extents; /* sorted by address and inode, each only once */
	size_t num_items, size;
	size_t steps_back; /* items whose address, or then inode, is less than that of the item before */
	struct {
		uint64_t bytenr;
		size_t items_end;
	} leaves[SHARE_LEAVES];
	unsigned num_leaves, leaf; /* the one that the listing is in */
	size_t next;		   /* item that is probably asked for next */
};

/* The part of the extent tree that could not be read when that was last tried: keys from first to before end. */
struct share_lost {
	struct btrkit_key first, end;
	int ret; /* 0: none */
	struct btrkit_error why;
};

/* Results for the blocks from the root to the position of a cursor. */
struct share_path {
	struct {
		uint64_t bytenr;
		bool shared;
	} levels[LEVELS_MAX];
};

/* Counters, see struct btrkit_fiemap_stats. */
struct share_counts {
	uint64_t checked, saved_by_leaf, saved_by_batch;
	uint64_t blocks_checked, saved_by_path;
	uint64_t spread_checked, saved_by_repeat;
};

/* Number of extents with several items in one file that Linux remembers. The result may depend on it. */
#define SHARE_RECENT 8

struct share_ctx {
	struct btrkit_fs *fs;
	struct tree_root root;	/* the subvolume */
	uint64_t last_snapshot; /* generation of the last snapshot of the subvolume */
	struct cursor extents;	/* in the extent tree, at data extents, moves forward through a batch */
	struct cursor blocks;	/* in the extent tree, at tree blocks */
	struct cursor others;	/* in the subvolume, at leaves other than that of the listing */
	struct cursor ahead;	/* in the subvolume, at leaves after that of the listing */
	struct share_path path; /* of the listing's cursor, or of the one ahead of it */
	struct share_path other_path;
	struct share_batch batch;
	struct share_lost lost; /* not to be read again for each extent */
	struct btrkit_error failure;
	struct {
		uint64_t bytenr;
		bool shared;
		bool looked; /* the leaves that refer to it were checked */
	} recent[SHARE_RECENT];
	unsigned recent_slot;
	struct share_counts counts;
};

/* Call share_release() in any case. @return 0; -ENOENT: no extent tree; <0 */
int share_init(struct share_ctx *s, struct btrkit_fs *fs, const struct tree_root *root, uint64_t last_snapshot,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void share_release(struct share_ctx *s);

/* Start with a new file. */
void share_new_file(struct share_ctx *s);

/*
 * The listing arrives at the leaf of @c: find out whether the leaf can be reached from another tree. If not, look up
 * the references of its data extents from the current item on, with @one_inode only those of the current inode; and
 * perhaps those of the next leaves, for which this function must be called nevertheless.
 */
int share_enter_leaf(struct share_ctx *s, const struct cursor *c, bool one_inode, bool *shared,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the data extent of @fe, the decoded current item of @c, is shared. @leaf_shared is the result of
 * share_enter_leaf().
 */
int share_extent_shared(struct share_ctx *s, const struct cursor *c, const struct file_extent *fe, bool leaf_shared,
			bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
