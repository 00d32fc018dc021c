/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_SHARE_STATE_H
#define BTRKIT_BACKREF_SHARE_STATE_H

/* What is known while the extents of a subvolume are checked; see share.h. */

#include "lib/backref/shared.h"
#include "lib/base/sort.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/tree/cursor.h"

/* A data extent of a batch, and the result of its references. */
struct share_extent {
	uint64_t bytenr;
	struct shared_refs refs; /* of the file that refers to it */
	bool lost;		 /* its references cannot be read */
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

#endif
