/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_STATE_H
#define BTRKIT_CHECK_STATE_H

/* What the parts of a check hand to each other; they run in the order in which they stand in check.c. */

#include <pthread.h>

#include <btrkit/check.h>

#include "lib/base/err.h"
#include "lib/check/codes.h"
#include "lib/check/table.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/space/block_group.h"
#include "lib/tree/cursor.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

/* Grows; no element is taken out. */
struct check_list {
	void *at;
	size_t n, room;
};

/* A tree that has a root item, or is the root or the chunk tree. */
struct check_root {
	struct tree_root root;
	struct root_item item; /* zeros of the root and the chunk tree, which have none */
	bool has_item;
	/* A subvolume that is being dropped: what lies left of the key is gone, in nodes of drop_level and above. */
	bool partly;
};

/* Of the roots the number of the first that has an item. */
#define CHECK_ROOTS_FIRST 2u

/* A chunk with the block group that it should have. */
struct check_group {
	uint64_t start, length;
	uint64_t flags;	    /* of the block group item; of the chunk where there is none */
	uint64_t said_used; /* by the item */
	uint64_t used;	    /* by the extents; filled in by extents.c */
	bool chunk, item;   /* there is one */
};

/* Checksums that a log has of data. */
struct check_log_sum {
	uint64_t start, length;
	uint8_t *sums; /* NULL without --data */
};

struct check_finding {
	struct btrkit_error what;
	bool has_values;
	uint64_t found, expected, times;
};

/* Of one code the first ones in the order of places: the same ones whatever order they are met in. */
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
	uint64_t key; /* what hashes of references are made with: another one in each run */
	pthread_mutex_t lock;
	/* Under the lock: */
	int failed; /* the first failure that ends the work, a negative errno */
	struct btrkit_error failure;
	struct check_findings findings[CHECK_NUM_CODES];
	uint64_t done, due; /* for progress: tree blocks, and with --data bytes of it in units of a block */

	struct check_tables tables; /* extents and blocks */
	struct check_list roots;    /* struct check_root: the root tree's, the chunk tree's, then by keys */
	struct check_list groups;   /* struct check_group, by address */
	uint64_t group_tree;	    /* that has the block group items */
	struct check_list csums;    /* struct range: data that has checksums, by address, none touching the next */
	struct check_list stripes;  /* struct range: data that the stripe tree has a place of, as csums */
	struct check_list bare;	    /* struct range: written data without checksums, of which there is parity */
	struct check_list log_data; /* struct range: data that only logs name, by address, none touching the next */
	struct check_list log_sums; /* struct check_log_sum: of one log by address, then those of the next */
	struct check_list names;    /* of names.c: contradictions that were gone through */
	struct check_list circles;  /* of circles.c: sums of directories that lie in none */
	/* What could not be read, so that what else would follow from it is not told. */
	bool roots_lost;   /* of the root tree, root items that are not valid too: which trees there are is not known */
	bool extents_lost; /* of the extent tree */
	bool csums_lost;   /* of the checksum tree */
	bool stripes_lost; /* of the stripe tree */
	bool blocks_lost;  /* of any tree that makes references */
	bool chunks_lost;  /* of the chunk tree */
	bool groups_lost;  /* of block group items */
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

/* Room for another element of @size bytes; NULL without memory, which check_fail() was told. */
void *check_list_add(struct check *c, struct check_list *list, size_t size);
/* The same for who cannot tell it. */
void *check_list_room(struct check_list *list, size_t size);

/*
 * Tells of a finding. @what: message, field and places, as err_corrupt() and err_at_*() fill it in. By any thread.
 * A failure to keep it ends the check, without the caller having to know.
 */
void check_tell(struct check *c, enum check_code code, const struct btrkit_error *what);
/* The same where numbers say what there is and what there should be. */
void check_tell_values(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t found,
		       uint64_t expected);
/* Takes back what was told with the same words of the same place, with numbers that are so far apart. */
void check_withdraw(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t apart);
/*
 * In one go: what is told is begun anew with a message and gets the places that are given (others are 0 and NULL).
 */
struct check_place {
	uint64_t tree, logical;
	const struct btrkit_key *key;
	const char *field;
	uint64_t devid, physical; /* devid 0: no device; physical 0: no place of it */
	const uint64_t *values;	  /* found and expected, or NULL */
};
void check_say(struct check *c, enum check_code code, const struct check_place *at, const char *fmt, ...)
	BTRKIT_PRINTF(4, 5);

/* path.c: the path of the file that a finding is about, to be freed; NULL: none, or it cannot be told. */
char *check_path(const struct check *c, const struct btrkit_error *what);

/* Everything that was found goes to the caller. @return 0, or what a function of the caller's returned */
int check_hand_out(struct check *c);

/*
 * Something ends the check: no memory, a spill file that fails, a caller who had enough.
 * @return @ret, or what ended it before
 */
int check_fail(struct check *c, int ret, const struct btrkit_error *err);
/* Whether it has ended: loops ask that now and then. */
bool check_failed(struct check *c);
/* @n more tree blocks are done. */
void check_progress(struct check *c, uint64_t n);

#define CHECK_COPIES_MAX 4u /* RAID1C4 */

/*
 * Reads every copy of a block past the cache and judges them against @ref; what is wrong is told, as of its owner.
 * @return true: @buf has a good copy
 */
bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf);
/* Neighbours that a thread reads together: two copies of them stay in a processor's own cache. */
#define CHECK_RUN_BYTES (128u << 10)
#define CHECK_RUN_BLOCKS 32u /* at the most: of 4096 bytes */
struct check_run {
	uint8_t *blocks; /* one behind the other */
	uint8_t *others; /* another copy */
	size_t max;	 /* as many as there is room for */
};
/* @return 0 or what check_fail() was told */
int check_run_init(struct check *c, struct check_run *run);
void check_run_release(struct check_run *run);
/*
 * Reads as many blocks from the first on as can be read in one request; @refs have addresses one behind the other. Each
 * is judged and told as by check_read_block(). *good of each: run->blocks has a good copy.
 * @return how many, at least one
 */
size_t check_read_run(struct check *c, struct check_run *run, const struct node_ref *refs, size_t n, bool *good);
/* All copies of @n neighbours will be read soon. */
void check_request(struct check *c, uint64_t logical, size_t n);
/* A block in memory as a node: what functions want that take one. It has no life of its own. */
struct node check_node(const struct check *c, const uint8_t *block);

/*
 * items.c: reads all items of a tree around what cannot be read, upon which *lost becomes true.
 * @return 0 or what check_fail() was told
 */
int check_each_item(struct check *c, const struct tree_root *root, bool *lost,
		    void (*take)(void *ctx, const struct item *item), void *ctx);
/* As cursor_find(), cursor_seek() and cursor_next(); without memory the check ends. By any thread. */
int check_find(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_seek(struct check *c, struct cursor *cur, const struct btrkit_key *key);
int check_next(struct check *c, struct cursor *cur);
/* A block that is told of elsewhere if it cannot be read, from any copy. @return whether it is at @buf */
bool check_reread(struct check *c, const struct node_ref *ref, uint8_t *buf);

/* How a cursor's failure in a tree is told: as a finding of the block or the item where it came to be. */
void check_tell_failure(struct check *c, uint64_t tree, int ret, const struct btrkit_error *what);

/* The tree's root by its objectid (the last one with it), or NULL. */
const struct check_root *check_find_root(const struct check *c, uint64_t id);
/* The group that has an address, or NULL. *hint is near it, and moves. */
const struct check_group *check_group_of(const struct check *c, uint64_t logical, size_t *hint);

/* What a reference is added up as: a reference of @count has as many times this. */
uint64_t check_ref_hash(const struct check *c, const struct extent_ref *ref, uint64_t bytenr);
/* Names, inodes and whatever else has to be met in two places: @kind keeps sorts of it apart. */
uint64_t check_hash(const struct check *c, unsigned kind, const uint64_t *numbers, size_t n, const void *bytes,
		    size_t len);

/* --- The parts. Each returns 0 or what check_fail() was told. --- */

/* supers.c: the copies of the superblock on every device. */
int check_supers(struct check *c);
/* volume.c: chunks, device extents, devices, block group items; fills in groups. */
int check_volume(struct check *c);
/* roots.c: the root items; fills in roots. */
int check_roots(struct check *c);
/* csums.c: the checksum tree; fills in csums. */
int check_csums(struct check *c);
/* extents.c: the extent tree; fills in the tables, and used of the groups. */
int check_extents(struct check *c);
/* stripes.c: the stripe tree; fills in stripes. */
int check_stripes(struct check *c);
/* walk.c: every tree from its root down to above its leaves, and the references that are made on the way. */
int check_walk(struct check *c);
/* leaves.c: every leaf, and what they make together. */
int check_leaves(struct check *c);
/* refs.c: the references that were told against those that were made. */
int check_refs(struct check *c);
/* log.c: the log trees; fills in log_data and log_sums. */
int check_logs(struct check *c);
/* log_data.c: whether only a log names data of an address. *end, if that is less: where it ends, or begins if not. */
bool check_log_data(const struct check *c, uint64_t logical, uint64_t *end);
void check_log_sums_release(struct check *c);
/* csums.c: whether all that has a checksum is data, and not space for it. */
int check_csum_extents(struct check *c);
/* space.c: counters of the groups, and the caches of free space. */
int check_space(struct check *c);
/* subvolumes.c: what root refs and orphan items say of subvolumes; then uuids.c. */
int check_subvolumes(struct check *c);
/* uuids.c: the UUID tree. */
int check_uuids(struct check *c);
/* balance.c: an interrupted balance. */
int check_balance(struct check *c);
/* replace.c: the replacement of a device. */
int check_replace(struct check *c);
/* qgroups.c: counters of both kinds of quota. */
int check_qgroups(struct check *c);
/* data.c: data against its checksums, every copy, and parity. */
int check_data(struct check *c);

/* --- What leaves call. --- */

/* Where a thread was last in the tables: neighbours are looked for together. */
struct check_hints {
	size_t extent, csum;
};
/*
 * file_refs.c: a file extent of a leaf. Takes what it refers to from the sum of the extent, and judges it against that.
 */
void check_file_extent(struct check *c, const struct node *leaf, bool full_backref, const struct item *item,
		       const struct file_extent *fe, struct check_hints *hints);
/* The reference that it makes. */
struct extent_ref check_file_ref(const struct node *leaf, bool full_backref, const struct item *item,
				 const struct file_extent *fe);
/* extent_fields.c: what a valid file extent says against what any can say. */
void check_extent_fields(struct check *c, const struct node *leaf, const struct item *item,
			 const struct file_extent *fe);
/* leaf.c: an item that nobody reads. */
void check_unknown_item(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item);
/* groups.c: extents.c has met a block group item. */
void check_group_item(struct check *c, const struct btrkit_key *key);
/* stripes.c: whether all of a range has a place by the stripe tree, or needs none. */
bool check_stripes_have(const struct check *c, uint64_t start, uint64_t length);
/* data_bare.c: data was written there and has no checksums, or not all. By any thread. */
void check_bare_data(struct check *c, uint64_t start, uint64_t length);
/* csums.c: how many bytes of a range of data have checksums. */
uint64_t check_csum_bytes(const struct check *c, uint64_t logical, uint64_t length, size_t *hint);

#endif
