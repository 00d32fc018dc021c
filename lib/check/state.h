/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_STATE_H
#define BTRKIT_CHECK_STATE_H

/* State and functions shared by the passes of a check. The passes run in the order in which check.c lists them. */

#include <pthread.h>

#include <btrkit/check.h>

#include "lib/base/array.h"
#include "lib/base/err.h"
#include "lib/check/codes.h"
#include "lib/check/trees/table.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

/* A tree that has a root item, or is the root or the chunk tree. */
struct check_root {
	struct tree_root root;
	struct root_item item; /* zeroed for the root tree and the chunk tree, which have none */
	bool has_item;
	/* A subvolume being dropped: nodes at drop_level and above have lost everything before drop_progress. */
	bool partly;
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
	uint64_t done, due; /* for progress: tree blocks, and with --data also data in units of the block size */

	struct check_tables tables; /* extents and blocks */
	struct array roots;	    /* struct check_root: root tree, chunk tree, then the others in key order */
	struct array groups;	    /* struct check_group, by address */
	uint64_t group_tree;	    /* the tree that holds the block group items */
	struct array csums;	    /* struct range: data with checksums, by address, adjacent ranges merged */
	struct array stripes;	    /* struct range: data that the stripe tree maps, as csums */
	struct array bare;	    /* struct range: written data without checksums in groups with parity */
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

/* Appends an element of @size bytes. @return it; NULL: out of memory, and check_fail() was called */
void *check_list_add(struct check *c, struct array *list, size_t size);

/*
 * Reports a finding. @what: message, field and location, as filled in by err_corrupt() and err_at_*(). May be called
 * by any thread. If the finding cannot be stored, the check ends; the caller need not handle that.
 */
void check_tell(struct check *c, enum check_code code, const struct btrkit_error *what);
/* Same, with the value found and the value expected. */
void check_tell_values(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t found,
		       uint64_t expected);
/* Withdraws a finding with the same message and location whose two values differ by @apart. */
void check_withdraw(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t apart);
/* Reports a finding with a new message and the location in @at, whose unused fields are 0 or NULL. */
struct check_place {
	uint64_t tree, logical;
	const struct btrkit_key *key;
	const char *field;
	uint64_t devid, physical; /* devid 0: no device; physical 0: no address on it */
	const uint64_t *values;	  /* found and expected, or NULL */
};
void check_say(struct check *c, enum check_code code, const struct check_place *at, const char *fmt, ...)
	BTRKIT_PRINTF(4, 5);

/* path.c: the path of the file that a finding is about, to be freed by the caller; NULL: none, or not known. */
char *check_path(const struct check *c, const struct btrkit_error *what);

/* Passes all findings to the caller's callback. @return 0, or what the callback returned */
int check_hand_out(struct check *c);

/*
 * Ends the check: out of memory, an I/O error on the spill file, or a callback that asked to stop.
 * @return @ret, or the error that ended the check earlier
 */
int check_fail(struct check *c, int ret, const struct btrkit_error *err);
/* Whether check_fail() was called. Long loops poll this. */
bool check_failed(struct check *c);
/* Adds @n tree blocks to the progress. */
void check_progress(struct check *c, uint64_t n);

#define CHECK_COPIES_MAX 4u /* RAID1C4 */

/*
 * Reads every copy of a block, bypassing the cache, and verifies each against @ref. Damage is reported for the tree of
 * its owner.
 * @return whether @buf has a good copy
 */
bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf);
/* Adjacent blocks that a thread reads at once. Two copies of a run fit into the cache of one core. */
#define CHECK_RUN_BYTES (128u << 10)
#define CHECK_RUN_BLOCKS 32u /* the maximum, with 4096-byte blocks */
struct check_run {
	uint8_t *blocks; /* contiguous */
	uint8_t *others; /* another copy, for comparison */
	size_t max;	 /* capacity in blocks */
};
/* @return 0, or what check_fail() returned */
int check_run_init(struct check *c, struct check_run *run);
void check_run_release(struct check_run *run);
/*
 * Reads as many blocks, starting with the first, as one request can cover; the addresses in @refs are adjacent. Each
 * block is verified and reported as by check_read_block(). @good: for each block, whether run->blocks has a good copy.
 * @return the number of blocks read, at least one
 */
size_t check_read_run(struct check *c, struct check_run *run, const struct node_ref *refs, size_t n, bool *good);
/* Requests readahead of all copies of @n adjacent blocks. */
void check_request(struct check *c, uint64_t logical, size_t n);
/* Wraps a block in memory in a struct node that borrows it; it is not reference-counted. */
struct node check_node(const struct check *c, const uint8_t *block);

/*
 * items.c: passes all items of a tree to @take. Skips what cannot be read, and sets *lost then.
 * @return 0, or what check_fail() returned
 */
int check_each_item(struct check *c, const struct tree_root *root, bool *lost,
		    void (*take)(void *ctx, const struct item *item), void *ctx);
/* As cursor_find(), cursor_seek() and cursor_next(), but running out of memory ends the check. For any thread. */
int check_find(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_seek(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_next(struct check *c, struct cursor *cur);
/* Reads a good copy of a block whose damage is reported elsewhere. @return whether it is in @buf */
bool check_reread(struct check *c, const struct node_ref *ref, uint8_t *buf);

/* Reports a cursor error as a finding at the block or item that caused it. */
void check_tell_failure(struct check *c, uint64_t tree, int ret, const struct btrkit_error *what);

/* Finds a tree's root by objectid (the last one, if there are several), or returns NULL. */
const struct check_root *check_find_root(const struct check *c, uint64_t id);
/* Finds the group that contains an address, or returns NULL. *hint: where the search starts; updated. */
const struct check_group *check_group_of(const struct check *c, uint64_t logical, size_t *hint);

/* Hash of a reference. A reference with a count contributes its hash @ref->count times. */
uint64_t check_ref_hash(const struct check *c, const struct extent_ref *ref, uint64_t bytenr);
/* Keyed hash of something that must occur in two places, such as a name or an inode. @kind separates the domains. */
uint64_t check_hash(const struct check *c, unsigned kind, const uint64_t *numbers, size_t n, const void *bytes,
		    size_t len);

/* --- The passes. Each returns 0, or what check_fail() returned. --- */

/* supers.c: checks the copies of the superblock on every device. */
int check_supers(struct check *c);
/* volume.c: checks chunks, device extents, devices and block group items; fills in groups. */
int check_volume(struct check *c);
/* roots.c: checks the root items; fills in roots. */
int check_roots(struct check *c);
/* csums.c: reads the checksum tree; fills in csums. */
int check_csums(struct check *c);
/* extents.c: reads the extent tree; fills in the tables, and the used bytes of the groups. */
int check_extents(struct check *c);
/* stripes.c: checks the stripe tree; fills in stripes. */
int check_stripes(struct check *c);
/* walk.c: walks every tree from the root to the level above the leaves, and subtracts the references it meets. */
int check_walk(struct check *c);
/* leaves.c: reads every leaf, and checks what the leaves of a tree form together. */
int check_leaves(struct check *c);
/* refs.c: compares the references recorded in the extent tree with those found in the trees. */
int check_refs(struct check *c);
/* log.c: checks the log trees; fills in log_data and log_sums. */
int check_logs(struct check *c);
/*
 * log_data.c: whether only a log refers to the data at an address. *end is lowered to where the answer changes: the
 * end of that data, or the start of the next.
 */
bool check_log_data(const struct check *c, uint64_t logical, uint64_t *end);
void check_log_sums_release(struct check *c);
/* csums.c: checks that everything with a checksum is written data, not a hole or preallocated space. */
int check_csum_extents(struct check *c);
/* space.c: checks the counters of the groups, the free space tree and the v1 cache. */
int check_space(struct check *c);
/* subvolumes.c: checks root refs and orphan items of subvolumes; then calls uuids.c. */
int check_subvolumes(struct check *c);
/* uuids.c: checks the UUID tree. */
int check_uuids(struct check *c);
/* balance.c: checks the item of an interrupted balance. */
int check_balance(struct check *c);
/* replace.c: checks the item of a device replacement. */
int check_replace(struct check *c);
/* qgroups.c: checks the counters of full and simple quotas. */
int check_qgroups(struct check *c);
/* data.c: verifies every copy of the data against its checksums, and parity. */
int check_data(struct check *c);

/* --- Functions called for the items of leaves. --- */

/* A thread's last positions in the tables; the next lookup is usually close by. */
struct check_hints {
	size_t extent, csum;
};
/*
 * file_refs.c: checks a file extent of a leaf against the data extent it refers to, and subtracts its reference from
 * that extent's sum.
 */
void check_file_extent(struct check *c, const struct node *leaf, bool full_backref, const struct item *item,
		       const struct file_extent *fe, struct check_hints *hints);
/* The reference that a file extent makes. */
struct extent_ref check_file_ref(const struct node *leaf, bool full_backref, const struct item *item,
				 const struct file_extent *fe);
/* extent_fields.c: checks the fields of a decoded file extent against their possible values. */
void check_extent_fields(struct check *c, const struct node *leaf, const struct item *item,
			 const struct file_extent *fe);
/* leaf.c: reports an item of a type that nothing reads. */
void check_unknown_item(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item);
/* groups.c: called by extents.c for each block group item. */
void check_group_item(struct check *c, const struct btrkit_key *key);
/* stripes.c: whether the stripe tree maps the whole range, or need not. */
bool check_stripes_have(const struct check *c, uint64_t start, uint64_t length);
/* data_bare.c: records written data that lacks some or all checksums. May be called by any thread. */
void check_bare_data(struct check *c, uint64_t start, uint64_t length);
/* csums.c: returns how many bytes of a range of data have checksums. */
uint64_t check_csum_bytes(const struct check *c, uint64_t logical, uint64_t length, size_t *hint);

#endif
