/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_STATE_H
#define BTRKIT_CHECK_STATE_H

/* State shared by the passes of a check, which run in the order in which check.c lists them. */

#include <pthread.h>

#include <btrkit/check.h>

#include "lib/base/array.h"
#include "lib/base/err.h"
#include "lib/check/codes.h"
#include "lib/check/trees/table.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/space/block_group.h"
#include "lib/sweep/drop.h"
#include "lib/tree/cursor.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

/* A tree that has a root item, or is the root or the chunk tree. */
struct check_root {
	struct tree_root root;
	struct root_item item; /* zeroed for the root tree and the chunk tree, which have none */
	bool has_item;
	struct sweep_drop drop; /* whether it is a subvolume being dropped, which has lost a part */
};

/* Index in check.roots of the first root that has a root item. */
#define CHECK_ROOTS_FIRST 2u

/* A chunk with the block group that it should have. */
struct check_group {
	uint64_t start, length;
	uint64_t flags;	    /* from the block group item, or from the chunk if there is no item */
	uint64_t said_used; /* according to the item */
	uint64_t used;	    /* according to the extents; filled in by extents.c */
	bool chunk, item;   /* whether each exists */
};

/* Checksums of data in a log tree. */
struct check_log_sum {
	uint64_t start, length;
	uint8_t *sums; /* NULL without --data */
};

struct check_finding {
	struct btrkit_error what;
	bool has_values;
	uint64_t found, expected, times;
};

/* The first findings of one code, ordered by location, so that the result does not depend on thread timing. */
struct check_findings {
	struct check_finding *at;
	size_t n, room;
	uint64_t total;
};

/* Findings of one code with one cause on one device. */
struct check_fold {
	enum check_code code;
	enum btrkit_cause cause;
	uint64_t devid;
	struct check_findings list;
	uint64_t last;
	unsigned num_addresses, num_trees;
	uint64_t addresses[BTRKIT_CHECK_FOLD_LISTED], trees[BTRKIT_CHECK_FOLD_LISTED];
};

#define CHECK_FOLDS_MAX 64u

struct check {
	struct btrkit_fs *fs;
	struct btrkit_check_options opts;
	struct btrkit_check_result result;
	struct item_ctx items; /* fs->items */
	unsigned threads;
	uint64_t key; /* seed of the reference hashes, different in each run */
	pthread_mutex_t lock;
	/* Protected by the lock: */
	int failed; /* the first failure that ends the check, a negative errno */
	struct btrkit_error failure;
	struct check_findings findings[CHECK_NUM_CODES];
	struct check_fold *folds; /* CHECK_FOLDS_MAX, allocated with the first */
	size_t num_folds;
	bool too_many_folds; /* nothing is folded, so that the result does not depend on which came first */
	uint64_t done, due; /* for progress: tree blocks, and with --data also data in units of the block size */

	struct check_tables tables; /* extents and blocks */
	struct array roots;	    /* struct check_root: root tree, chunk tree, then the others in key order */
	struct array groups;	    /* struct check_group, by address */
	uint64_t group_tree;	    /* the tree that holds the block group items */
	struct array csums;	    /* struct range: data with checksums, by address, adjacent ranges merged */
	struct array stripes;	    /* struct range: data that the stripe tree maps, as csums */
	struct array nodatasum;	    /* struct range: written data without checksums in groups with parity */
	struct array log_data;	    /* struct range: data that only logs refer to, as csums */
	struct array log_sums;	    /* struct check_log_sum: log by log, each by address */
	struct array names;	    /* used by names.c: contradictions that were already examined */
	struct array circles;	    /* used by circles.c: sums of directories known to form no cycle */
	/* Something of these could not be read, so findings that would only follow from that are suppressed. */
	bool roots_lost;   /* root tree, including invalid root items: the set of trees is not known */
	bool extents_lost; /* extent tree */
	bool csums_lost;   /* checksum tree */
	bool stripes_lost; /* stripe tree */
	bool blocks_lost;  /* any tree that refers to extents */
	bool chunks_lost;  /* chunk tree */
	bool groups_lost;  /* block group items */
};

/* For qsort(). */
static inline int check_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static inline int check_compare_numbers(const void *a, const void *b)
{
	return check_compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

#endif
