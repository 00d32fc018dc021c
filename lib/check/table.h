/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_TABLE_H
#define BTRKIT_CHECK_TABLE_H

/* Data extents and tree blocks in the order of their addresses, as small as they can be: there are very many. */

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <btrkit/error.h>

#define CHECK_ADDRESS (~4095ull) /* addresses are multiples of it; below there is room for other things */

/* Below the address of a data extent. */
#define CHECK_EXTENT_DOUBT 1u /* its item is not valid, which was told: references are not judged */
/* Of an extent that counts several references, a bit for each kind of compression that file extents say. */
#define CHECK_EXTENT_KIND(compression) (2u << (compression))
#define CHECK_EXTENT_KINDS (15u << 1)
#define CHECK_EXTENT_KEPT (1u << 5)	 /* in place of these: space for data to come */
#define CHECK_EXTENT_KEPT_CSUM (1u << 6) /* there are checksums where it says so */

struct check_extent {
	atomic_ullong place;
	atomic_ullong sum; /* of references told, less those made: 0 when all is well */
	uint32_t sectors;
	uint32_t refs; /* as it counts them, UINT32_MAX for more */
};

enum check_block_place {
	CHECK_BLOCK_LEVEL = 7,
	CHECK_BLOCK_FULL = 1 << 3,  /* has FULL_BACKREF */
	CHECK_BLOCK_MANY = 1 << 4,  /* counts more than one reference */
	CHECK_BLOCK_STRAY = 1 << 5, /* the extent tree does not have it */
	CHECK_BLOCK_DOUBT = 1 << 6, /* as CHECK_EXTENT_DOUBT */
};

/* What is found out of a block on the way down. */
enum check_block_state {
	CHECK_REACHED = 1 << 0,
	CHECK_FILES = 1 << 1,  /* in a tree of files */
	CHECK_WHOLE = 1 << 2,  /* with all that it points to */
	CHECK_PARTLY = 1 << 3, /* by a dying subvolume, from its drop key on */
	CHECK_ROOT = 1 << 4,   /* of a tree */
	CHECK_LOST = 1 << 5,   /* could not be read */
	CHECK_AGAIN = 1 << 6,  /* by more than one pointer */
	CHECK_RELOC = 1 << 7,  /* below the root of a relocation tree */
	CHECK_RISING = 1 << 8, /* a leaf with directories that lie in such with a higher number */
	CHECK_STATE_BITS = 9   /* above: the number of the root that reached it first */
};

struct check_block {
	uint64_t place;
	uint64_t generation;
	atomic_ullong sum;
	atomic_uint state;
	/* A number from 1 on, or 0: in walk.c of a snapshot's generation, in leaves.c of what lies below the block. */
	uint32_t below;
};

static_assert(sizeof(struct check_extent) == 24, "a data extent takes more memory than was promised");
static_assert(sizeof(struct check_block) == 32, "a tree block takes more memory than was promised");

/* Memory that lies in a file when there would be too much of it. */
struct check_table {
	void *at;
	size_t n, room, entry;
	int fd; /* of the file, or -1 */
};

struct check_tables {
	struct check_table extents, blocks;
	uint64_t memory;      /* that they may take; 0: no bound */
	uint64_t bytes, most; /* that they take, and took at the most */
	const char *spill;
};

void check_tables_init(struct check_tables *t, uint64_t memory, const char *spill);
void check_tables_release(struct check_tables *t);
/* The same of one that is counted with them: at first it has an entry's size and no file. */
void check_table_release(struct check_tables *t, struct check_table *table);

/*
 * Room for @more entries, zeros as long as nobody wrote there.
 * @return 0; -ENOMEM: no memory, or more than is allowed and no directory to spill to; another errno: of the file there
 */
int check_table_reserve(struct check_tables *t, struct check_table *table, size_t more,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @more, ascending and none of them there, @n, take their places. @return 0; <0 */
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
	return e->place & CHECK_ADDRESS;
}

static inline uint64_t check_block_bytenr(const struct check_block *b)
{
	return b->place & CHECK_ADDRESS;
}

static inline unsigned check_block_level(const struct check_block *b)
{
	return b->place & CHECK_BLOCK_LEVEL;
}

/* The first entry whose address is not below @address; *hint (may be NULL) is near it and moves there. */
size_t check_table_lower_bound(const struct check_table *table, uint64_t address, size_t *hint);

/* The block with that address, or NULL. */
struct check_block *check_find_block(const struct check_tables *t, uint64_t bytenr, size_t *hint);
/* The data extent that has the address, or NULL. */
struct check_extent *check_find_extent(const struct check_tables *t, uint64_t logical, uint32_t sectorsize,
				       size_t *hint);

#endif
