/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_PATHS_H
#define BTRKIT_USAGE_PATHS_PATHS_H

/*
 * Data shared by the parts of the listing by directory. All file trees are read twice: first to find the directories,
 * then to count each file where it is.
 */

#include <btrkit/usage_paths.h>

#include "lib/sweep/leaves.h"
#include "lib/tree/cursor.h"
#include "lib/usage/state.h"

#define PATHS_NONE UINT32_MAX

/* A directory. Those of a subvolume are contiguous and sorted by inode. */
struct paths_dir {
	uint64_t inode;
	uint64_t index;	 /* directory index in its parent */
	uint32_t parent; /* number of its parent; PATHS_NONE: none found */
	uint32_t rank;	 /* position in the walk; PATHS_NONE: not reached */
	uint32_t node;	 /* its node or that of its nearest ancestor with one; PATHS_NONE: not reached */
	uint32_t depth;
};

/* Data of a directory that is needed until all are found. */
struct paths_found {
	uint64_t inode, index, parent;
	uint64_t name; /* offset of its name */
	uint32_t name_len;
	bool named, linked; /* a reference to a name was found; its link count is not 0 */
};

/*
 * A directory in the result. Nodes are numbered in the order of the walk, so all nodes below one are those up to @end.
 */
struct paths_node {
	uint64_t subvolume, inode;
	uint32_t parent, end, depth;
	uint32_t name_len;
	uint64_t name;
	atomic_ullong total, unshared;
	uint64_t set_shared, frees;
	uint64_t covered; /* end of the shared ranges added so far */
};

struct paths_subvolume {
	struct tree_root root;
	bool placed; /* the following three are set */
	uint64_t parent, dirid, index;
	uint64_t name;
	uint32_t name_len;
	uint32_t first, num; /* its directories */
	uint32_t top;	     /* number of its root directory; PATHS_NONE: unreadable */
	atomic_ullong lost;  /* files whose directories were not found */
};

struct paths_top {
	uint64_t id;
	uint32_t node;
};

struct btrkit_usage_paths {
	struct paths_node *nodes;
	size_t num_nodes;
	struct array names;	/* bytes */
	struct paths_top *tops; /* by id */
	size_t num_tops;
};

/* A range of shared data as FIEMAP would report it for a file in a directory. */
struct paths_range {
	uint64_t start;
	uint32_t sectors;
	uint32_t node;
};

/*
 * Ranges within a window of addresses. If there are more than fit, the window is made smaller, and the ranges after it
 * are collected by reading all files again.
 */
struct paths_ranges {
	struct paths_range *at;
	size_t n, room;
	uint64_t first, end; /* the window */
	uint32_t sectorsize;
};

struct paths_work {
	struct usage_work w;
	struct btrkit_usage counted; /* counters for lib/usage; those of the caller are not changed */
	struct btrkit_usage_paths_options opts;
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *p;
	struct paths_subvolume *subvolumes; /* by id */
	size_t num_subvolumes;
	struct paths_dir *dirs;
	size_t num_dirs;
	struct array found; /* struct paths_found: all directories, until dirs is complete */
	struct paths_ranges ranges;
	bool again; /* reading the files again, for ranges only */
};

/* The file being read. */
struct paths_file {
	uint64_t inode;
	bool known;   /* its inode item was found */
	bool regular; /* regular file, whose bytes count */
	bool linked;  /* link count is not 0 */
	bool named;   /* a reference to a name was found */
	bool lost;    /* was counted in paths_subvolume.lost */
	uint32_t dir; /* directory of its first name; PATHS_NONE: none found */
	uint64_t index;
	uint32_t common; /* common ancestor of all names; PATHS_NONE: none */
	uint64_t total, unshared;
};

/* A batch of leaves of a subvolume, and the results. */
struct paths_batch {
	struct paths_work *pw;
	struct paths_subvolume *subvolume;
	size_t n;
	struct sweep_leaf *leaves;
	struct node_ref *want;
	bool *ok;
	uint8_t *buf;
	struct array found, names;
	struct paths_file file;
	uint32_t dir_hint;
	size_t extent_hint;
	struct array ranges;
};

struct paths_reader {
	int (*leaf)(struct paths_batch *b, const uint8_t *leaf, struct btrkit_error *err);
	/* Called after the last leaf of a batch. */
	int (*end)(struct paths_batch *b, struct btrkit_error *err);
	/* Called by one thread at a time, ordered by subvolume and key. */
	int (*gather)(struct paths_batch *b, struct btrkit_error *err);
};

#endif
