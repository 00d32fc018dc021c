/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_STATE_H
#define BTRKIT_USAGE_STATE_H

/* Data and functions shared by the parts of lib/usage, in the order in which they run. */

#include <btrkit/usage.h>

#include "lib/base/array.h"
#include "lib/base/pipeline.h"
#include "lib/tree/filesystem.h"
#include "lib/usage/sets.h"
#include "lib/usage/table.h"

#define USAGE_THREADS_MAX 64u
#define USAGE_BATCH_BYTES (512u << 10) /* tree blocks per batch */

/* The root of a tree of an owner. */
struct usage_root {
	struct tree_root root;
	uint32_t refs;
	uint32_t owner; /* its number in sets */
	uint8_t uuid[UUID_SIZE], parent_uuid[UUID_SIZE];
	/*
	 * Of a subvolume being deleted: everything before drop_key is already deleted, in nodes of drop_level and
	 * above.
	 */
	struct btrkit_key drop_key;
	uint8_t drop_level;
	bool partly;
	bool has_snapshots;
};

/* A set that is used in the result. */
struct usage_final_set {
	uint32_t number; /* number in btrkit_usage.sets */
	struct btrkit_usage_space space;
};

struct btrkit_usage {
	uint32_t sectorsize, nodesize;
	struct usage_table blocks, extents; /* with sets as 0: none, or an index in final plus 1 */
	struct sets sets;
	struct usage_final_set *final;
	size_t num_final;
	struct btrkit_usage_owner *owners;
	size_t num_owners;
	/* Conversion of owner numbers. In sets, owners that share much have neighbouring numbers. */
	uint32_t *inside, *outside; /* inside[outer number], outside[inner number] */
	uint32_t *counting;	    /* for sets_init(): counts subvolumes, also dying ones */
	struct btrkit_usage_total total;
	struct btrkit_usage_types types;
	struct array told; /* struct usage_place, sorted: reported damage */
};

struct usage_place {
	uint64_t logical, slot; /* slot UINT64_MAX: the whole block */
};
#define USAGE_TOLD_MAX 65536u

/* Converts a length to sectors as in tables. Returns 0, which no extent has, if it does not fit. */
static inline uint32_t usage_sectors(const struct btrkit_usage *u, uint64_t bytes)
{
	return bytes / u->sectorsize > UINT32_MAX ? 0 : (uint32_t)(bytes / u->sectorsize);
}

/* Returns the owners of final set number @i by their inner numbers. */
const struct set *usage_set_at(const struct btrkit_usage *u, size_t i);

/* A block or extent that something refers to, but that the extent tree lacks or describes differently. */
struct usage_stray {
	uint64_t bytenr;
	uint64_t generation; /* of a tree block */
	uint32_t set;
	uint32_t digest;	/* of a tree block */
	uint32_t sectors, info; /* data extents only */
};

/* Returns whether damage in this block or item was reported before. */
bool usage_was_told(const struct btrkit_usage *u, const struct btrkit_error *what);

struct usage_work {
	struct btrkit_usage *u;
	struct btrkit_fs *fs;
	struct btrkit_usage_options opts;
	unsigned threads;	 /* 0: only the caller's thread */
	pthread_mutex_t lock;	 /* protects strays, pending and calls of opts.damage() */
	struct array roots; /* struct usage_root */
	struct array own;	 /* struct tree_root: trees of the filesystem itself */
	struct array v1;	 /* struct usage_stray: extents of the v1 cache */
	struct array lost;	 /* struct sweep_lost */
	struct array strays[LEVELS_MAX];
	struct array data_strays;
	struct array partial; /* struct usage_partial */
	uint32_t filesystem;	   /* the set of the filesystem itself */
	uint64_t kept_bytes;	   /* memory of the sets after the last collection */
	struct array pending; /* see usage_add_later(); all of one table */
	uint64_t *orphans;	   /* by inner number: difference to the previous owner */
	uint64_t done, due;	   /* for progress */
};

/*
 * Reports to the caller that something is unreadable or contradictory, once per place. -ENOMEM is returned, not
 * reported.
 * @return 0: continue without it; <0
 */
int usage_damage(struct usage_work *w, int ret, const struct btrkit_error *what,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Same for damage in something that the owners of @set have; the message names them. */
int usage_damage_of(struct usage_work *w, uint32_t set, int ret, struct btrkit_error *what,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reports progress: @n more of @due are done. To be called by one thread at a time. */
int usage_progress(struct usage_work *w, uint64_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns the number of additional threads; 0: use the caller's thread only. @wanted: from the options */
unsigned usage_threads(unsigned wanted);
/* Creates a pipeline with w->threads threads, or without any if they cannot be started. */
int usage_pipeline(struct usage_work *w, const struct pipeline_ops *ops, void *const *slots, size_t n,
		   struct pipeline **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns the number of blocks per batch. */
static inline size_t usage_batch_blocks(const struct usage_work *w)
{
	return USAGE_BATCH_BYTES / w->fs->items.nodesize;
}

/*
 * Reads blocks into @buf one after another, and contiguous ones in one request. ok[i] is set if block i was read;
 * unreadable blocks are reported.
 *
 * @sets: owners of each block; NULL if @refs have owners
 */
int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Access to a block in a buffer. */
static inline const struct disk_header *block_header(const uint8_t *block)
{
	return (const struct disk_header *)block;
}

static inline uint32_t block_nritems(const uint8_t *block)
{
	return le32_get(block_header(block)->nritems);
}

static inline const struct disk_item *block_items(const uint8_t *block)
{
	return (const struct disk_item *)(block_header(block) + 1);
}

static inline struct item block_item(const uint8_t *block, uint32_t i)
{
	const struct disk_item *d = block_items(block) + i;

	return (struct item){ key_get(&d->key), block + sizeof(struct disk_header) + le32_get(d->offset),
			      le32_get(d->size) };
}

static inline const struct disk_key_ptr *block_ptrs(const uint8_t *block)
{
	return (const struct disk_key_ptr *)(block_header(block) + 1);
}

/* Finds the owners in the root tree and numbers them. */
int usage_find_roots(struct usage_work *w, struct tree_root *extent_tree, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_name_owners(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads the blocks and extents from the extent tree. */
int usage_load_extents(struct usage_work *w, const struct tree_root *extent_tree,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns whether a chunk contains the range; *hint is the number of a chunk to try first. */
bool usage_in_chunk(const struct usage_work *w, uint64_t start, uint64_t length, size_t *hint);

/*
 * Returns whether unused sets should be dropped. May be called at any time, but usage_collect_sets() only while no
 * thread is running. It renumbers all sets.
 */
bool usage_sets_are_many(struct usage_work *w);
int usage_collect_sets(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Walks all file trees from the roots down, level by level. */
int usage_walk(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A pointer to a block. */
struct usage_pointer {
	uint64_t bytenr, generation;
	uint8_t level;
	uint32_t digest; /* digest of the block's first key; 0: a root */
};

/*
 * Adds owners to blocks, up to USAGE_FIND_MANY. May be called by many threads in parallel. @pending: see
 * usage_add_later()
 */
int usage_reach_blocks(struct usage_work *w, struct array *pending, const struct usage_pointer *p, size_t n,
		       uint32_t set, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Stores @set as the owners of the entry @at of a table, or notes it in @pending if there are others already. @to: the
 * entry's set. May be called by many threads in parallel, each with its own list.
 */
int usage_add_later(struct array *pending, size_t at, atomic_uint *to, uint32_t set,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds @set to the owners at once. To be called while no thread is running. */
int usage_add_now(struct usage_work *w, atomic_uint *to, uint32_t set, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Moves a list to w->pending. May be called by many threads in parallel. */
int usage_pending_gather(struct usage_work *w, struct array *from, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* For usage_collect_sets(): marks the noted sets in @numbers or, if @put, replaces them by their new numbers. */
void usage_pending_renumber(struct usage_work *w, uint32_t *numbers, bool put);
/* Returns whether so many are noted that they should be settled before more are. */
bool usage_pending_is_full(struct usage_work *w);
/*
 * Adds what is noted in w->pending to the blocks or, if @data, to the extents, and drops unused sets if there are many.
 * To be called while no thread is running, and before entries are added to the table.
 */
int usage_pending_settle(struct usage_work *w, bool data, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Returns a short hash of a key, to detect that a block is not the expected one. */
uint32_t usage_digest(const struct disk_key *key);

/*
 * Subvolumes that are being deleted (partial.c): add a block on the path to drop_progress of root number @root; read
 * such blocks of a level and reach their remaining children; and finally, reach the blocks themselves.
 */
int usage_add_partial(struct usage_work *w, const struct usage_pointer *p, size_t root,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_read_partials(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_own_partials(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A data extent as a leaf refers to it. */
struct usage_named {
	uint32_t slot; /* slot of the file extent item */
	uint32_t info;
	uint64_t bytenr, sectors;
};

/* Results of reading leaves, per thread. */
struct usage_leaf_reader {
	struct array *pending; /* where to note owners that are to be added later */
	size_t hint;
	bool astray; /* the last extent was not near the one before: look up the next ones together */
	struct usage_named waiting[USAGE_FIND_MANY];
	size_t num_waiting;
	uint32_t weight;		 /* of the leaf's set */
	struct btrkit_usage_types types; /* inline and referenced bytes */
	struct array orphans;	 /* struct usage_orphans */
};

struct usage_orphans {
	uint32_t set;
	uint64_t n;
};

int usage_read_leaf(struct usage_work *w, struct usage_leaf_reader *r, const uint8_t *leaf, uint32_t set,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds the results of a reader to the totals. To be called by one thread at a time. */
void usage_leaf_gathered(struct usage_work *w, struct usage_leaf_reader *r);

/* Adds blocks and extents to the tables that are only known from references. */
int usage_merge_blocks(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_merge_extents(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Adds an entry to a list of strays. When the list is full, it is sorted and duplicates are combined. To be called by
 * one thread at a time.
 */
int usage_strays_add(struct usage_work *w, struct array *l, const struct usage_stray *s,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_strays_tidy(struct usage_work *w, struct array *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds an extent to the strays. May be called by any thread. */
int usage_stray_extent(struct usage_work *w, const struct usage_stray *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reaches the blocks of the filesystem's own trees, if parts of the extent tree are unreadable. */
int usage_own_trees(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads the log trees. */
int usage_load_logs(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Computes the sums by set and by owner. */
int usage_sum(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_extent_describe(const struct btrkit_usage *u, const struct usage_extent *e, struct btrkit_usage_extent *ret);
void usage_space_add(struct btrkit_usage_space *to, const struct btrkit_usage_space *more);

#endif
