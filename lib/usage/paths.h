/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_STATE_H
#define BTRKIT_USAGE_PATHS_STATE_H

/*
 * What the parts of the listing of directories hand to each other. All files are read twice: first their directories
 * are found, then each file is counted where it lies.
 */

#include <btrkit/usage_paths.h>

#include "lib/tree/cursor.h"
#include "lib/usage/state.h"

#define PATHS_NONE UINT32_MAX

/* A directory of a subvolume. Those of a subvolume are neighbours, in the order of their inodes. */
struct paths_dir {
	uint64_t inode;
	uint64_t index;	 /* in its parent */
	uint32_t parent; /* PATHS_NONE: it has none, or none that can be found */
	uint32_t rank;	 /* in a walk through all; PATHS_NONE: it is not met there */
	uint32_t node;	 /* its own, or that of the directory above it that has one; PATHS_NONE as above */
	uint32_t depth;
};

/* What of it is wanted until all are found. */
struct paths_found {
	uint64_t inode, index, parent;
	uint64_t name; /* where it begins among the names */
	uint32_t name_len;
	bool named, linked; /* by what was met, by its inode */
};

/* One that is in the answer. Their numbers are those of a walk, so what is below one are the numbers up to an end. */
struct paths_node {
	uint64_t subvolume, inode;
	uint32_t parent, end, depth;
	uint32_t name_len;
	uint64_t name;
	atomic_ullong total, unshared;
	uint64_t set_shared, frees;
	uint64_t covered; /* up to where its shared ranges were added up */
};

struct paths_subvolume {
	struct tree_root root;
	bool placed; /* it lies in a directory of another one: */
	uint64_t parent, dirid, index;
	uint64_t name;
	uint32_t name_len;
	uint32_t first, num; /* directories */
	uint32_t top;	     /* its top's number; PATHS_NONE: that could not be read */
	atomic_ullong lost;  /* files that lie in no directory that can be found */
};

struct paths_top {
	uint64_t id;
	uint32_t node;
};

struct btrkit_usage_paths {
	struct paths_node *nodes;
	size_t num_nodes;
	struct usage_list names; /* bytes */
	struct paths_top *tops;	 /* by id */
	size_t num_tops;
};

/* A place of shared data that FIEMAP would tell of a file below a directory. */
struct paths_range {
	uint64_t start;
	uint32_t sectors;
	uint32_t node;
};

/*
 * Ranges within a window of addresses. When there are more than there is room for the window becomes smaller, and what
 * is behind it waits for another reading of all files.
 */
struct paths_ranges {
	struct paths_range *at;
	size_t n, room;
	uint64_t first, end; /* of the window */
	uint32_t sectorsize;
};

struct paths_work {
	struct usage_work w;
	struct btrkit_usage counted; /* the base's counters: the caller's are left alone */
	struct btrkit_usage_paths_options opts;
	struct btrkit_usage *usage;
	struct btrkit_usage_paths *p;
	struct paths_subvolume *subvolumes; /* by id */
	size_t num_subvolumes;
	struct paths_dir *dirs;
	size_t num_dirs;
	struct usage_list found; /* struct paths_found: all of them, until dirs takes their place */
	struct paths_ranges ranges;
	bool again; /* files are read once more for the ranges alone */
};

/* The file that is being read. */
struct paths_file {
	uint64_t inode;
	bool known;   /* there is such a file */
	bool regular; /* whose bytes count */
	bool linked;  /* has names, by its inode */
	bool named;   /* by what was met */
	bool lost;    /* was counted as such */
	uint32_t dir; /* that has the first of them; PATHS_NONE: none has */
	uint64_t index;
	uint32_t common; /* the node below which all of them are; PATHS_NONE: there is none */
	uint64_t total, unshared;
};

/* A few leaves of a subvolume, and what is found there. */
struct paths_batch {
	struct paths_work *pw;
	struct paths_subvolume *subvolume;
	size_t n;
	struct usage_leaf *leaves;
	struct node_ref *want;
	bool *ok;
	uint8_t *buf;
	struct usage_list found, names;
	struct paths_file file;
	uint32_t dir_hint;
	size_t extent_hint;
	struct usage_list ranges;
};

struct paths_reader {
	int (*leaf)(struct paths_batch *b, const uint8_t *leaf, struct btrkit_error *err);
	/* Behind the last leaf. */
	int (*end)(struct paths_batch *b, struct btrkit_error *err);
	/* By one thread at a time, in the order of subvolumes and keys. */
	int (*gather)(struct paths_batch *b, struct btrkit_error *err);
};

/* Reads all leaves of all subvolumes. */
int paths_read(struct paths_work *pw, const struct paths_reader *reader, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* An item of a leaf is not as it should be. */
int paths_blame(struct paths_batch *b, const uint8_t *leaf, uint32_t slot, int ret, struct btrkit_error *what,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To the first item of an inode that is not below @type. @return 0; 1 there is none, or it could not be read; <0 */
int paths_seek(struct paths_batch *b, struct cursor *c, uint64_t inode, uint8_t type,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A subvolume is not as it should be. */
int paths_tell(struct paths_work *pw, uint64_t subvolume, struct btrkit_error *what,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes behind those there are; @name NULL: to be filled in. @return where they begin; UINT64_MAX: no memory */
uint64_t paths_keep_name(struct usage_list *names, const void *name, size_t len);

/* The subvolumes, from the root tree. */
int paths_find_subvolumes(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The directories, from the inodes. */
int paths_find_dirs(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Where they lie, and the nodes. */
int paths_link(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Where each file counts. */
int paths_count(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The number of the directory with that inode; *hint is one near it. @return PATHS_NONE: there is none */
uint32_t paths_find_dir(const struct paths_work *pw, const struct paths_subvolume *s, uint64_t inode, uint32_t *hint);
/* The lowest node that both are, or are below. PATHS_NONE where there is none, or where one is. */
uint32_t paths_common(const struct btrkit_usage_paths *p, uint32_t a, uint32_t b);

/* @range_memory: see the options. */
int paths_ranges_init(struct paths_ranges *r, uint64_t range_memory, size_t num_nodes, uint32_t sectorsize,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void paths_ranges_release(struct paths_ranges *r);
void paths_ranges_add(struct paths_ranges *r, const struct paths_range *ranges, size_t n);
/* Adds up what is in the window, and goes on to what is behind it. @return whether there is anything */
bool paths_ranges_sum(struct paths_ranges *r, struct btrkit_usage_paths *p);

#endif
