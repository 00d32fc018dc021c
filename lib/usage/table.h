/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_TABLE_H
#define BTRKIT_USAGE_TABLE_H

/*
 * Tables of tree blocks and data extents, sorted by address. Entries are as small as possible because there are very
 * many.
 */

#include <assert.h>
#include <stdatomic.h>

#include <btrkit/error.h>

#include "lib/format/disk.h"
#include "lib/sweep/entries.h"

/* Addresses are multiples of 4096; the lower bits hold the level, and a digest of the first key. */
#define USAGE_ADDRESS SWEEP_ADDRESS
#define USAGE_LEVEL 7u
#define USAGE_DIGEST_SHIFT 3
#define USAGE_DIGEST_MAX 511u /* 0: no pointer found so far, or a root */

struct usage_block {
	atomic_ullong tagged; /* address, level and digest */
	atomic_uint set;
	uint32_t generation; /* lower 32 bits */
};

enum usage_flag {
	USAGE_WRITTEN = 1 << 0,	    /* a regular file extent refers to it */
	USAGE_PREALLOC = 1 << 1,    /* a preallocated file extent refers to it */
	USAGE_REFS_DIFFER = 1 << 2, /* its references alone make the extent shared, see lib/backref/shared.h */
	USAGE_IN_SHARED_LEAF = 1 << 3,
	USAGE_DOUBTFUL = 1 << 4, /* a contradiction with a file extent was reported */
	USAGE_COMPRESSION = 3 << 8,
	USAGE_COMPRESSION_SHIFT = 8,
	USAGE_UNCOMPRESSED_SHIFT = 10 /* upper bits: uncompressed sectors; 0: not compressed */
};
#define USAGE_UNCOMPRESSED_MAX (UINT32_MAX >> USAGE_UNCOMPRESSED_SHIFT)

struct usage_extent {
	uint64_t start; /* multiple of 4096 */
	uint32_t sectors;
	atomic_uint set;
	atomic_uint info;   /* USAGE_* */
	atomic_uint common; /* for paths.h: common directory of all references */
};

/* Combines what two file extents say about an extent. If they contradict each other, the higher value is used. */
static inline uint32_t usage_info_join(uint32_t a, uint32_t b)
{
	const uint32_t compression = USAGE_COMPRESSION, flags = (1u << USAGE_COMPRESSION_SHIFT) - 1;
	const uint32_t sectors = UINT32_MAX << USAGE_UNCOMPRESSED_SHIFT;

	return ((a | b) & flags) | ((a & compression) > (b & compression) ? a & compression : b & compression) |
	       ((a & sectors) > (b & sectors) ? a & sectors : b & sectors);
}

static_assert(sizeof(struct usage_block) == 16, "a tree block takes more memory than was promised");
static_assert(sizeof(struct usage_extent) == 24, "a data extent takes more memory than was promised");

/* The index has the address of every 64th entry. */
#define USAGE_INDEX_STEP 64u

#define USAGE_TABLE_MAX (1ull << 34) /* entries: hundreds of GiB of memory */

struct usage_table {
	void *at;
	size_t n, room;
	uint64_t *index;
};

/* Ensures space for @more entries. @return 0; -ENOMEM */
int usage_table_reserve(struct usage_table *t, size_t entry, size_t more, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Frees unused memory and rebuilds the index, after entries were added. @return 0; -ENOMEM */
int usage_table_settle(struct usage_table *t, size_t entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Merges @n sorted entries that are not in the table. @return 0; -ENOMEM */
int usage_table_merge(struct usage_table *t, size_t entry, const void *more, size_t n,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_table_release(struct usage_table *t);

/* Returns the address of entry @i. Every entry starts with it. */
static inline uint64_t usage_table_address(const struct usage_table *t, size_t entry, size_t i)
{
	return sweep_entry_address(t->at, entry, i);
}

/* Returns the first entry with an address of at least @address. */
static inline size_t usage_table_lower_bound(const struct usage_table *t, size_t entry, uint64_t address)
{
	size_t low = 0, high = (t->n + USAGE_INDEX_STEP - 1) / USAGE_INDEX_STEP;

	/* Count the index entries below it: the result is after the last of these, up to the next one. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (t->index[mid] < address)
			low = mid + 1;
		else
			high = mid;
	}
	high = low * USAGE_INDEX_STEP < t->n ? low * USAGE_INDEX_STEP : t->n;
	low = low ? (low - 1) * USAGE_INDEX_STEP + 1 : 0;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (usage_table_address(t, entry, mid) < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Finds an entry by address at *hint or shortly after it, and updates *hint. @return its number; SIZE_MAX: not there */
static inline size_t usage_table_near(const struct usage_table *t, size_t entry, uint64_t address, size_t *hint)
{
	for (size_t i = *hint; i < t->n && i < *hint + 3; i++) {
		if (usage_table_address(t, entry, i) == address) {
			*hint = i;
			return i;
		}
	}
	return SIZE_MAX;
}

/* Finds an entry by address, and updates *hint. @return its number; SIZE_MAX: there is none */
static inline size_t usage_table_find(const struct usage_table *t, size_t entry, uint64_t address, size_t *hint)
{
	size_t i = usage_table_near(t, entry, address, hint);

	if (i != SIZE_MAX)
		return i;
	i = usage_table_lower_bound(t, entry, address);
	if (i == t->n || usage_table_address(t, entry, i) != address)
		return SIZE_MAX;
	*hint = i;
	return i;
}

/* Number of lookups at a time that makes good use of memory bandwidth. */
#define USAGE_FIND_MANY 32u

/*
 * Finds @n addresses, in any order, at the same time, so that their cache misses overlap. @ret receives their numbers,
 * or SIZE_MAX.
 */
void usage_table_find_many(const struct usage_table *t, size_t entry, const uint64_t *addresses, size_t n, size_t *ret);

static inline struct usage_block *usage_blocks_at(const struct usage_table *t, size_t i)
{
	return (struct usage_block *)t->at + i;
}

static inline struct usage_extent *usage_extents_at(const struct usage_table *t, size_t i)
{
	return (struct usage_extent *)t->at + i;
}

static inline unsigned usage_block_level(const struct usage_block *b)
{
	return (unsigned)(atomic_load_explicit(&b->tagged, memory_order_relaxed) & USAGE_LEVEL);
}

static inline uint32_t usage_block_digest(const struct usage_block *b)
{
	return (uint32_t)(atomic_load_explicit(&b->tagged, memory_order_relaxed) >> USAGE_DIGEST_SHIFT) &
	       USAGE_DIGEST_MAX;
}

static inline unsigned long long usage_block_tagged(uint64_t bytenr, unsigned level, uint32_t digest)
{
	return bytenr | level | digest << USAGE_DIGEST_SHIFT;
}

/* Returns a short hash of a key, to detect that a block is not the expected one. */
uint32_t usage_digest(const struct disk_key *key);

#endif
