/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_H
#define BTRKIT_SPACE_SPACE_H

/*
 * The space of a filesystem that is being written: its block groups, what is free in each, and where new extents go.
 * It lives as long as the write handle, over many transactions.
 *
 * An extent is allocated (space_alloc), enters the extent tree when delayed references are run (space_enter), leaves
 * it (space_leave), and is pinned from then until the commit is durable (space_committed): nothing that the last
 * superblock reaches is handed out, nor is anything twice in one transaction.
 *
 * Of groups with parity whole rows are handed out only, in which nothing was used when the transaction began: what the
 * last superblock reaches shares no parity with anything that is written. The rest of a row is handed out within the
 * same transaction; after that the row is closed until all of it is free again.
 *
 * What is free in a group is loaded when it is first asked for, from the committed trees: from the free space tree if
 * that is valid, else from the group's v1 cache if that is, else from the extent tree.
 */

#include "lib/space/block_group.h"
#include "lib/space/free_map.h"
#include "lib/tree/overlay.h"

/* A change of what the extent tree holds, for the free space tree. */
struct space_change {
	struct range range;
	bool free; /* became free; else used */
};

struct space_group {
	struct block_group item;   /* used: of the extent tree as it is now */
	bool changed;		   /* item differs from what is in the tree; who writes it there sets this to false */
	bool fresh;		   /* created in this transaction, and not loaded but wholly free */
	bool removed;		   /* in this transaction: nothing is allocated here any more */
	bool loaded;
	bool by_extents;	   /* loaded, and from the extent tree: nothing else need be asked */
	bool touched;		   /* in this transaction: it is one of space_next_touched() */
	struct free_map *free;	   /* what may be handed out; NULL as long as it is not loaded */
	uint64_t row;		   /* bytes of data that have parity in common, or 0 */
	struct free_map *closed;   /* with parity: what is free besides, in rows that are not to be written; or NULL */
	struct free_map *pinned;   /* free once the transaction is durable; NULL: nothing */
	uint64_t committed_used;   /* of the extent tree before the transaction */
	/* No piece of so many bytes that begins at a multiple of unfit_align is free, for all that is known. */
	uint64_t unfit, unfit_align;
	/* Since they were last taken, in the order in which they came: space_take_changes(). */
	struct space_change *changes;
	size_t num_changes, changes_size;
	struct space_group *next_touched;
};

/* Where the free space of groups was loaded from, and what it cost. */
struct space_load_stats {
	uint64_t by_tree, by_cache, by_extents; /* groups */
};

struct space;

/* Reads the block groups of an open filesystem. @return 0; <0 */
int space_create(struct btrkit_fs *fs, struct space **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct space *space_destroy(struct space *s);

/* A transaction begins. Free space is loaded from the trees of before, whatever it does to them. */
int space_begin(struct space *s, struct overlay *o, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * It is durable, and the superblock of fs the new one: what is pinned becomes free, fresh groups become ordinary,
 * removed ones disappear. A map that there is no memory for is forgotten, to be loaded again.
 */
void space_committed(struct space *s);
/* It was dropped: everything is as it was before, chunks too (what was loaded may be forgotten). */
void space_aborted(struct space *s);

/*
 * Takes @max bytes or less, but @min at least, aligned to @align, from a group of @type (BG_DATA, BG_METADATA or
 * BG_SYSTEM; mixed groups serve the first two), all of them whole sectors. What is taken one after the other lies one
 * behind the other where it can. No chunk is allocated: see chunk.h.
 * @return 0; -ENOSPC; what loading met; -EUCLEAN: by the extent tree of the last commit it is in use
 */
int space_alloc(struct space *s, uint64_t type, uint64_t min, uint64_t max, uint64_t align, struct range *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What was allocated is given back before it was in the extent tree: pinned. */
int space_unalloc(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Closes the rows of groups with parity of which the transaction has taken a part: nothing more of them is handed out
 * before the commit. For who writes whole rows before it. @return 0; -ENOMEM
 */
int space_close_rows(struct space *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * An extent that was allocated was put into the extent tree.
 * @return 0; -EUCLEAN: it is free, or in no group; -ENOMEM
 */
int space_enter(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * An extent was taken out of the extent tree: pinned.
 * @return 0; -EUCLEAN: it is free or pinned, or in no group; -ENOMEM
 */
int space_leave(struct space *s, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * What was taken for free must not be in use: by a free space tree that is wrong, or a damaged cache, somebody's data
 * would be overwritten. @extents: of an extent tree. @return 0; -EUCLEAN: it is; <0
 */
int space_check_unused(struct cursor *extents, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What is free of a group that is loaded, handed out or not. */
uint64_t space_group_free(const struct space_group *g);
/* Whether any part of a range is free in a group that is loaded. */
bool space_group_touches(const struct space_group *g, const struct range *r);

/* Bytes that are free in groups of @type, in however many pieces; nothing is loaded for it. */
uint64_t space_free_bytes(const struct space *s, uint64_t type);
/*
 * How many pieces of @size bytes, aligned to it, can still be taken from groups of @type; stops counting (and loading)
 * at @enough. @return 0; <0
 */
int space_count(struct space *s, uint64_t type, uint64_t size, uint64_t enough, uint64_t *pieces,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes in groups of @type that become free with the commit. */
uint64_t space_pinned(const struct space *s, uint64_t type);

/* The groups, in the order of addresses; also removed ones until the commit. */
size_t space_num_groups(const struct space *s);
struct space_group *space_group_at(struct space *s, size_t i);
/* The group that holds an address, or NULL. */
struct space_group *space_group_of(struct space *s, uint64_t logical);
/* The groups that this transaction has to do with: the first after NULL, NULL after the last; fresh ones too. */
struct space_group *space_next_touched(const struct space *s, const struct space_group *g);
/* Bytes used in all groups: what the superblock says. */
uint64_t space_bytes_used(const struct space *s);

/*
 * The changes of a group since this was last called, netted: sorted, none touching another of its kind, and what was
 * used and freed again in between left out. The array is the caller's to free.
 * @return 0; -ENOMEM; -EUCLEAN: something was used or freed twice
 */
int space_take_changes(struct space_group *g, struct space_change **ret, size_t *n,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Loads a group's free space, from where it can be had, or from where @from says. What is loaded already stays.
 * @return 0; -ENOENT: there is no valid tree, or no cache of it that can be used; -EUCLEAN; <0
 */
enum space_source { SPACE_FROM_ANY, SPACE_FROM_TREE, SPACE_FROM_CACHE, SPACE_FROM_EXTENTS };
int space_load(struct space *s, struct space_group *g, enum space_source from,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct space_load_stats space_load_stats(const struct space *s);

#endif
