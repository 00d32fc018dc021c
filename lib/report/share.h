/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_SHARE_H
#define BTRKIT_REPORT_SHARE_H

/*
 * Whether Linux calls a data extent of a file shared. The extent items are read in batches, a leaf of the file's
 * tree at a time; the blocks on the way from the root to the leaf keep their verdict while neighbouring leaves are
 * visited.
 *
 * Linux's rule (fs/btrfs/backref.c): an extent is SHARED if it has two different references, counts aside, or one that
 * names another inode or another tree, or if a leaf that holds it can be reached from another tree. References of the
 * data relocation tree do not count.
 */

#include "lib/format/items/file_extent.h"
#include "lib/tree/cursor.h"

/* A data extent that a leaf names, and what its references say. */
struct share_extent {
	uint64_t bytenr;
	uint64_t inode; /* in whose file it was met */
	bool shared;	/* by its references alone */
	/* The only reference that counts, if it is not shared by them; type 0: there is none. */
	uint8_t ref_type; /* KEY_EXTENT_DATA_REF or KEY_SHARED_DATA_REF */
	uint64_t root;	  /* of a KEY_EXTENT_DATA_REF */
	uint64_t offset;  /* likewise */
	uint64_t parent;  /* of a KEY_SHARED_DATA_REF */
	uint32_t count;
	/* What the leaves that hold it say, once that was looked at: an extent in many pieces asks often. */
	bool leaves_known;
	bool leaves_shared;
};

/* The verdicts on the blocks from the root to where a cursor stands. */
struct share_path {
	struct {
		uint64_t bytenr;
		bool shared;
	} levels[LEVELS_MAX];
};

/* What was done, and what was not: as in struct btrkit_fiemap_stats. */
struct share_counts {
	uint64_t checked, saved_by_leaf, saved_by_batch;
	uint64_t blocks_checked, saved_by_path;
	uint64_t spread_checked, saved_by_repeat;
};

/* Extents with several items in one file: Linux remembers so many of them, and so the answer may depend on it. */
#define SHARE_RECENT 8

struct share_ctx {
	struct btrkit_fs *fs;
	struct tree_root root;	/* the subvolume */
	uint64_t last_snapshot; /* generation in which it was last part of a snapshot */
	struct cursor extents;	/* in the extent tree at data, moving forward through a batch */
	struct cursor blocks;	/* in the extent tree at tree blocks */
	struct cursor others;	/* in the subvolume: leaves other than the listed one */
	struct share_path path; /* of the listing's cursor */
	struct share_path other_path;
	struct share_extent *batch; /* ordered by bytenr and inode */
	size_t batch_len, batch_size, batch_next;
	struct {
		uint64_t bytenr;
		bool shared;
		bool looked; /* at the leaves that have it */
	} recent[SHARE_RECENT];
	unsigned recent_slot;
	struct share_counts counts;
};

/* Free with share_release(), whatever is returned. @return 0; -ENOENT: there is no extent tree; <0 */
int share_init(struct share_ctx *s, struct btrkit_fs *fs, const struct tree_root *root, uint64_t last_snapshot,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
void share_release(struct share_ctx *s);

/* A new file begins. */
void share_new_file(struct share_ctx *s);

/* Whether the leaf where @c stands can be reached from another tree. */
int share_leaf(struct share_ctx *s, const struct cursor *c, bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Looks up the references of every data extent that the leaf of @c names from the current item on, or with
 * @one_inode in items of the current inode only.
 */
int share_load_batch(struct share_ctx *s, const struct cursor *c, bool one_inode,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether the data extent of @fe is shared, which is the current item of @c decoded. @leaf_shared is share_leaf()'s
 * verdict; if it is false the batch must have been loaded.
 */
int share_extent_shared(struct share_ctx *s, const struct cursor *c, const struct file_extent *fe, bool leaf_shared,
			bool *shared, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
