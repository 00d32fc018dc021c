/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_TABLE_H
#define BTRKIT_CHECK_TABLE_H

/* Tables of data extents and tree blocks, sorted by address. Entries are compact because there may be very many. */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <btrkit/error.h>

#include "lib/sweep/entries.h"

#define CHECK_ADDRESS SWEEP_ADDRESS

/* Flags in the low bits of check_extent.tagged. */
#define CHECK_EXTENT_DOUBT 1u /* its item is invalid, which was reported: references are not checked */
/* If an extent has several references: a bit for each compression type that file extents give it. */
#define CHECK_EXTENT_KIND(compression) (2u << (compression))
#define CHECK_EXTENT_KINDS (15u << 1)
#define CHECK_EXTENT_PREALLOC (1u << 5)	     /* preallocated, instead of a compression type */
#define CHECK_EXTENT_PREALLOC_CSUM (1u << 6) /* and there are checksums in the preallocated part */

struct check_extent {
	atomic_ullong tagged; /* address, and CHECK_EXTENT_* in the low bits */
	atomic_ullong sum;    /* references in the extent tree, less those found: 0 if they agree */
	uint32_t sectors;
	uint32_t refs; /* reference count of its item, at most UINT32_MAX */
};

enum check_block_tags {
	CHECK_BLOCK_LEVEL = 7,
	CHECK_BLOCK_FULL = 1 << 3,  /* has FULL_BACKREF */
	CHECK_BLOCK_MANY = 1 << 4,  /* has a reference count above one */
	CHECK_BLOCK_STRAY = 1 << 5, /* missing from the extent tree */
	CHECK_BLOCK_DOUBT = 1 << 6, /* as CHECK_EXTENT_DOUBT */
};

/* What the walk down finds out about a block. */
enum check_block_state {
	CHECK_REACHED = 1 << 0,
	CHECK_FILES = 1 << 1,	/* in a file tree */
	CHECK_WHOLE = 1 << 2,	/* reached completely, with all its children */
	CHECK_DROPPED = 1 << 3, /* reached by a subvolume being dropped, from its drop key on */
	CHECK_ROOT = 1 << 4,	/* root of a tree */
	CHECK_LOST = 1 << 5,	/* could not be read */
	CHECK_AGAIN = 1 << 6,	/* reached by more than one pointer */
	CHECK_RELOC = 1 << 7,	/* below the root of a relocation tree */
	CHECK_RISING = 1 << 8,	/* a leaf with directories whose parent has a higher number */
	CHECK_STATE_BITS = 9	/* the bits above: index of the root that reached it first */
};

struct check_block {
	uint64_t tagged; /* address, and CHECK_BLOCK_* in the low bits */
	uint64_t generation;
	atomic_ullong sum;
	atomic_uint state;
	/* One-based index or 0: in walk.c into the snapshot generations, in leaves.c into the summaries (below). */
	uint32_t below;
};

static_assert(sizeof(struct check_extent) == 24, "a data extent takes more memory than was promised");
static_assert(sizeof(struct check_block) == 32, "a tree block takes more memory than was promised");

/* An array that is mapped from a spill file if it would take too much memory. */
struct check_table {
	void *at;
	size_t n, room, entry;
	int fd; /* of the spill file, or -1 */
};

struct check_tables {
	struct check_table extents, blocks;
	uint64_t memory;      /* limit; 0: none */
	uint64_t bytes, most; /* in use now, and peak */
	const char *spill;
};

void check_tables_init(struct check_tables *t, uint64_t memory, const char *spill);
void check_tables_release(struct check_tables *t);
/* Releases another table that counts towards the limit. Such a table starts with .entry set and .fd = -1. */
void check_table_release(struct check_tables *t, struct check_table *table);

/*
 * Makes room for @more entries, which are zeroed.
 * @return 0; -ENOMEM: out of memory, or above the limit without a spill directory; another errno: spill file error
 */
int check_table_reserve(struct check_tables *t, struct check_table *table, size_t more,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Merges @n entries into the table; @more is sorted and has no address of the table. @return 0; <0 */
int check_table_merge(struct check_tables *t, struct check_table *table, const void *more, size_t n,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

static inline struct check_extent *check_extent_at(const struct check_tables *t, size_t i)
{
	return (struct check_extent *)t->extents.at + i;
}

static inline struct check_block *check_block_at(const struct check_tables *t, size_t i)
{
	return (struct check_block *)t->blocks.at + i;
}

static inline uint64_t check_extent_start(const struct check_extent *e)
{
	return e->tagged & CHECK_ADDRESS;
}

static inline uint64_t check_block_bytenr(const struct check_block *b)
{
	return b->tagged & CHECK_ADDRESS;
}

static inline unsigned check_block_level(const struct check_block *b)
{
	return b->tagged & CHECK_BLOCK_LEVEL;
}

/* Index of the first entry with an address >= @address. *hint (may be NULL): where the search starts; updated. */
size_t check_table_lower_bound(const struct check_table *table, uint64_t address, size_t *hint);

/* Finds the block at an address, or returns NULL. */
struct check_block *check_find_block(const struct check_tables *t, uint64_t bytenr, size_t *hint);
/* Finds the data extent that contains an address, or returns NULL. */
struct check_extent *check_find_extent(const struct check_tables *t, uint64_t logical, uint32_t sectorsize,
				       size_t *hint);

#endif
