/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_H
#define BTRKIT_SPACE_SPACE_H

/*
 * The space of a filesystem that is being written: its block groups, the free space in each, and the allocation of new
 * extents. It lives as long as the write handle, over many transactions.
 *
 * An extent is allocated (space_alloc), enters the extent tree when delayed references are run (space_enter), and
 * leaves it (space_leave). From then on it is pinned until the commit is durable (space_committed). So nothing that the
 * last superblock can reach is allocated, and nothing is allocated twice in a transaction.
 *
 * In groups with parity, only full stripes without any used space at the beginning of the transaction are allocated:
 * what the last superblock can reach shares no parity with new writes. The rest of such a full stripe is allocated
 * within the same transaction; after that the full stripe is closed until it is completely free again.
 *
 * The free space of a group is loaded when it is first needed, from the committed trees: from the free space tree if
 * that is valid, else from the group's v1 cache if that is valid, else from the extent tree.
 */

#include "lib/space/block_group.h"
#include "lib/space/free_map.h"
#include "lib/tree/overlay.h"

/* A change in the extent tree, for the free space tree. */
struct space_change {
	struct range range;
	bool free; /* true: became free; false: became used */
};

struct space_group {
	struct block_group item;   /* used: by the current extent tree */
	bool changed;		   /* item differs from the tree; set to false by those who write it there */
	bool fresh;		   /* created in this transaction, completely free and so never loaded */
	bool removed;		   /* in this transaction: nothing is allocated here any more */
	unsigned read_only;	   /* calls of space_inc_ro() without space_dec_ro() */
	bool loaded;
	bool by_extents;	   /* loaded from the extent tree, so nothing else has to be checked */
	bool touched;		   /* in this transaction: listed by space_next_touched() */
	struct free_map *free;	   /* what may be allocated; NULL: not loaded */
	uint64_t full_stripe;	   /* bytes of data that share parity, or 0 */
	struct free_map *closed;   /* with parity: free space in full stripes that must not be written; or NULL */
	struct free_map *pinned;   /* free after the transaction is durable; NULL: nothing */
	uint64_t committed_used;   /* by the extent tree before the transaction */
	/* As far as known, no piece of @unfit bytes that begins at a multiple of @unfit_align is free. */
	uint64_t unfit, unfit_align;
	/* Not taken by space_take_changes() yet, in the order in which they were made. */
	struct space_change *changes;
	size_t num_changes, changes_size;
	struct space_group *next_touched;
};

/* How many groups had their free space loaded from where. */
struct space_load_stats {
	uint64_t by_tree, by_cache, by_extents; /* number of groups */
};

struct space;

/* Reads the block groups of an open filesystem. @return 0; <0 */
int space_create(struct btrkit_fs *fs, struct space **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct space *space_destroy(struct space *s);

/* Begins a transaction. Frees space is loaded from the trees as they are before it, whatever it changes there. */
int space_begin(struct space *s, struct overlay *o, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * The transaction is durable, and fs->super is the new superblock: what is pinned becomes free, fresh groups become
 * ordinary ones, and removed ones disappear. If there is no memory for a map, it is dropped, and loaded again when
 * needed.
 */
void space_committed(struct space *s);
/* The transaction was aborted: everything is as before, including chunks. (Loaded maps may be dropped.) */
void space_aborted(struct space *s);

/* In space_alloc.c: */
/*
 * Allocates up to @max bytes, but at least @min, aligned to @align, in a group of @type (BG_DATA, BG_METADATA or
 * BG_SYSTEM; mixed groups serve the first two). All of these are whole sectors. Consecutive allocations are adjacent if
 * possible. No chunk is allocated: see chunk.h.
 * @return 0; -ENOSPC; an error of loading; -EUCLEAN: by the extent tree of the last commit it is in use
 */
int space_alloc(struct space *s, uint64_t type, uint64_t min, uint64_t max, uint64_t align, struct range *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_exact.c: */
/*
 * Allocates exactly @r, which must be whole sectors of one group. For extents whose address is known and whose data is
 * on the devices already, as those of a log tree: with parity, the range may also be in a full stripe that has other
 * contents, and nothing else is allocated in the full stripes of the range before the commit, because writing there
 * would require all of their data. To keep a range untouched until the commit, as Linux does with the blocks of a log
 * tree, allocate it and call space_unalloc().
 * @return 0; -EBUSY: some of it is used, allocated or pinned, the group is read-only, or the transaction has allocated
 * another part of a full stripe of it; -EUCLEAN: the range is in no group, or by the extent tree of the last commit it
 * is in use; -EINVAL: these are no whole sectors; <0. On failure, the range is not allocated.
 */
int space_alloc_exact(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_alloc.c: */
/* Gives back an allocation that was never in the extent tree: it is pinned. */
int space_unalloc(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Makes a group read-only, like Linux while it relocates one: nothing is allocated there, and its space counts neither
 * as free nor as what a commit frees. Its extents can still be read and freed, and the group can be removed. Calls are
 * counted, each must be taken back by space_dec_ro(). This is a state of the handle: neither a commit nor an abort
 * changes it, except that it ends with the group. What was reserved before is not affected: see txn_inc_ro().
 */
void space_inc_ro(struct space_group *g);
void space_dec_ro(struct space_group *g);

/* In space_full_stripes.c: */
/*
 * Closes full stripes with parity of which the transaction has taken a part: nothing else in them is allocated before
 * the commit. For callers that write full stripes before it. @return 0; -ENOMEM
 */
int space_close_full_stripes(struct space *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_alloc.c: */
/* An allocated extent was inserted into the extent tree. @return 0; -EUCLEAN: it is free, or in no group; -ENOMEM */
int space_enter(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * An extent was removed from the extent tree: it is pinned.
 * @return 0; -EUCLEAN: it is free or pinned, or in no group; -ENOMEM
 */
int space_leave(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Check that supposedly free space is not in use. If a free space tree or cache is wrong, existing data would be
 * overwritten. @extents: cursor of an extent tree. @return 0; -EUCLEAN: it is in use; <0
 */
int space_check_unused(struct cursor *extents, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In space_full_stripes.c: */
/* Returns the free bytes of a loaded group, whether they may be allocated or not. */
uint64_t space_group_free(const struct space_group *g);
/* Whether any part of a range is free in a loaded group. */
bool space_group_touches(const struct space_group *g, const struct range *r);

/* In space_alloc.c: */
/* Returns the free bytes in groups of @type, however fragmented. Nothing is loaded for this. */
uint64_t space_free_bytes(const struct space *s, uint64_t type);
/*
 * Number of aligned pieces of @size bytes that can be allocated in groups of @type. Stops counting (and loading) at
 * @enough. @return 0; <0
 */
int space_count(struct space *s, uint64_t type, uint64_t size, uint64_t enough, uint64_t *pieces,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes in groups of @type that the commit makes free. */
uint64_t space_pinned(const struct space *s, uint64_t type);

/* In space.c: */
/* The groups, in address order, including removed ones until the commit. */
size_t space_num_groups(const struct space *s);
struct space_group *space_group_at(struct space *s, size_t i);
/* The group that contains an address, or NULL. */
struct space_group *space_group_of(struct space *s, uint64_t logical);
/* Groups that this transaction has changed or allocated from: the first for NULL; NULL after the last. */
struct space_group *space_next_touched(const struct space *s, const struct space_group *g);
/* Bytes used in all groups, as for the superblock. */
uint64_t space_bytes_used(const struct space *s);

/* In space_changes.c: */
/*
 * The changes of a group since the last call, netted: sorted, adjacent ones of a kind merged, and without what was used
 * and freed again. The caller frees the array.
 * @return 0; -ENOMEM; -EUCLEAN: something was used or freed twice
 */
int space_take_changes(struct space_group *g, struct space_change **ret, size_t *n,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Loads the free space of a group, from any source or from @from. Does nothing if it is loaded.
 * @return 0; -ENOENT: there is no valid tree or cache; -EUCLEAN; <0
 */
enum space_source { SPACE_FROM_ANY, SPACE_FROM_TREE, SPACE_FROM_CACHE, SPACE_FROM_EXTENTS };

/* In space_load.c: */
int space_load(struct space *s, struct space_group *g, enum space_source from,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct space_load_stats space_load_stats(const struct space *s);

#endif
