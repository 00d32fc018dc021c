/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_STATE_H
#define BTRKIT_USAGE_STATE_H

/* What the parts of the pass hand to each other; they run in the order in which they stand here. */

#include <btrkit/usage.h>

#include "lib/base/pipeline.h"
#include "lib/tree/filesystem.h"
#include "lib/usage/sets.h"
#include "lib/usage/table.h"

#define USAGE_THREADS_MAX 64u
#define USAGE_BATCH_BYTES (512u << 10) /* of tree blocks that a thread has in hand */

/* Grows. */
struct usage_list {
	void *at;
	size_t n, room;
};
void *usage_list_add(struct usage_list *l, size_t entry, struct btrkit_error *err);

/* The root of a tree that owners have: each reaches what is below it. */
struct usage_root {
	struct tree_root root;
	uint32_t refs;
	uint32_t owner; /* its number in sets */
	uint8_t uuid[UUID_SIZE], parent_uuid[UUID_SIZE];
	/* Of one that is being deleted: what lies left of the key is gone, in nodes of this level and above. */
	struct btrkit_key drop_key;
	uint8_t drop_level;
	bool partly;
};

/* A set that occurs. */
struct usage_final_set {
	uint32_t number; /* among all sets */
	struct btrkit_usage_space space;
};

struct btrkit_usage {
	uint32_t sectorsize, nodesize;
	struct usage_table blocks, extents; /* their sets: 0 for none, else the number here plus 1 */
	struct sets sets;
	struct usage_final_set *final;
	size_t num_final;
	struct btrkit_usage_owner *owners;
	size_t num_owners;
	/* Owners have other numbers in sets, where those that share much are neighbours. */
	uint32_t *inside, *outside; /* [outer number], [inner number] */
	uint32_t *counting;	    /* for sets_init(): subvolumes, dying ones too */
	struct btrkit_usage_total total;
	struct btrkit_usage_types types;
	struct usage_list told; /* struct usage_place, ascending: what is damaged there was told */
};

struct usage_place {
	uint64_t logical, slot; /* of a whole block UINT64_MAX */
};
#define USAGE_TOLD_MAX 65536u

/* As tables have them: 0, as no extent has, where there are more than fit. */
static inline uint32_t usage_sectors(const struct btrkit_usage *u, uint64_t bytes)
{
	return bytes / u->sectorsize > UINT32_MAX ? 0 : (uint32_t)(bytes / u->sectorsize);
}

/* The owners of set number @i, by their inner numbers. */
const struct set *usage_set_at(const struct btrkit_usage *u, size_t i);

/* A place that is named and that the extent tree does not have, or has otherwise. */
struct usage_stray {
	uint64_t bytenr;
	uint64_t generation; /* of a tree block */
	uint32_t set;
	uint32_t digest;	/* of a tree block */
	uint32_t sectors, info; /* of a data extent */
};

/* Extents of these addresses may be there although they were not found: their leaf could not be read. */
struct usage_lost {
	uint64_t first, last;
};

/* Whether what is damaged in a block, or in an item of it, was told. */
bool usage_was_told(const struct btrkit_usage *u, const struct btrkit_error *what);

struct usage_work {
	struct btrkit_usage *u;
	struct btrkit_fs *fs;
	struct btrkit_usage_options opts;
	unsigned threads;	 /* 0: none but the caller's */
	pthread_mutex_t lock;	 /* of strays and of what the caller is told */
	struct usage_list roots; /* struct usage_root */
	struct usage_list own;	 /* struct tree_root: of the trees of the filesystem itself */
	struct usage_list v1;	 /* struct usage_stray: extents of the v1 cache */
	struct usage_list lost;	 /* struct usage_lost */
	struct usage_list strays[LEVELS_MAX];
	struct usage_list data_strays;
	struct usage_list partial; /* struct usage_partial */
	uint32_t filesystem;	   /* the set of the filesystem itself */
	uint64_t kept_bytes;	   /* of the sets when those that nobody had were forgotten the last time */
	struct set_memo memo;	   /* of the caller's thread */
	uint64_t *orphans;	   /* by inner number: how many more than the one before has */
	uint64_t done, due;	   /* for progress */
};

/*
 * Something could not be read, or contradicts itself: tells it, once of each place. Without memory there is nobody to
 * tell.
 * @return 0: go on without it; <0
 */
int usage_damage(struct usage_work *w, int ret, const struct btrkit_error *what,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The same of what the owners of @set have: they are named. */
int usage_damage_of(struct usage_work *w, uint32_t set, int ret, struct btrkit_error *what,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @n more of @due were done. By one thread at a time. */
int usage_progress(struct usage_work *w, uint64_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* How many threads there are to be besides the caller's: 0 where one does. @wanted: of the options */
unsigned usage_threads(unsigned wanted);
/* A pipeline of usage's threads; falls back to none. */
int usage_pipeline(struct usage_work *w, const struct pipeline_ops *ops, void *const *slots, size_t n,
		   struct pipeline **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* How many blocks a thread has in hand. */
static inline size_t usage_batch_blocks(const struct usage_work *w)
{
	return USAGE_BATCH_BYTES / w->fs->items.nodesize;
}

/*
 * Reads blocks into @buf, one behind the other; neighbours in one request. *@ok says of each whether it is there: what
 * could not be read was told.
 *
 * @sets	of owners of each, NULL where @refs say whose they are
 */
int usage_read(struct usage_work *w, const struct node_ref *refs, const uint32_t *sets, size_t n, uint8_t *buf,
	       bool *ok, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A block that was read, in place. */
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

/* The leaves of a tree in the order of their keys. */
struct usage_leaf {
	uint64_t bytenr, generation;
	struct btrkit_key key;
};

struct usage_leaves {
	struct tree_root root;
	uint8_t level;		/* of those that are in the list now */
	bool told;		/* what of it cannot be read was told before */
	struct usage_list list; /* struct usage_leaf */
	struct usage_list lost; /* struct usage_lost: objectids below blocks that could not be read */
};

/* In three steps: the list has the root alone; as many times as there are levels above it, one level more. */
int usage_leaves_begin(const struct tree_root *root, struct usage_leaves *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_leaves_descend(struct usage_work *w, struct usage_leaves *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* All at once. Free with usage_leaves_release(), on failure too. What cannot be read is told and left out. */
int usage_leaves_find(struct usage_work *w, const struct tree_root *root, struct usage_leaves *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_leaves_release(struct usage_leaves *l);
struct node_ref usage_leaf_ref(const struct usage_leaves *l, size_t i);
/* Leaf number @i could not be read. */
int usage_leaf_lost(struct usage_leaves *l, size_t i, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Calls @visit for each leaf of a tree in the order of keys, through the cache: for trees that are small. */
typedef int (*usage_leaf_fn)(void *ctx, const struct node *leaf, struct btrkit_error *err);
int usage_each_leaf(struct usage_work *w, const struct tree_root *root, usage_leaf_fn visit, void *ctx,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Which owners there are, from the root tree. */
int usage_find_roots(struct usage_work *w, struct tree_root *extent_tree, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_name_owners(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The extent tree: which blocks and extents there are. */
int usage_load_extents(struct usage_work *w, const struct tree_root *extent_tree,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the extent tree's leaf that would have the address could not be read. */
bool usage_is_lost(const struct usage_work *w, uint64_t bytenr);

/* Whether a chunk has the range; *hint is the number of a chunk near it. */
bool usage_in_chunk(const struct usage_work *w, uint64_t start, uint64_t length, size_t *hint);

/*
 * Whether it is time to forget sets that nobody has any more; that may be asked at any time, and done when no thread
 * works. All numbers of sets are others then, and memos have to be emptied.
 */
bool usage_sets_are_many(struct usage_work *w);
/* Whether blocks of the level may make many. */
bool usage_sets_grow(struct usage_work *w, unsigned level);
int usage_collect_sets(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* From the roots down, level by level. */
int usage_walk(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A block is reached by the owners of @set. *hint is near where it is in the table. By many threads at once. */
struct usage_pointer {
	uint64_t bytenr, generation;
	uint8_t level;
	uint32_t digest; /* of the key, which is to be the first in the block; 0: a root */
};

struct usage_reacher {
	struct set_memo memo;
	size_t hint;
};
int usage_reach_block(struct usage_work *w, struct usage_reacher *r, const struct usage_pointer *p, uint32_t set,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_add_to_set(struct usage_work *w, struct set_memo *memo, atomic_uint *to, uint32_t set,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A few bits of a key: enough to see that a block is not the one that is meant. */
uint32_t usage_digest(const struct disk_key *key);

/*
 * partial.c: of a subvolume that is being deleted, number @root in the list of roots, a block on the path to where that
 * has come; what there is left of those of a level for it; and, when all is read, these blocks themselves.
 */
int usage_add_partial(struct usage_work *w, const struct usage_pointer *p, size_t root,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_read_partials(struct usage_work *w, struct usage_reacher *r, unsigned level,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_own_partials(struct usage_work *w, struct usage_reacher *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A data extent as a leaf has it. */
struct usage_named {
	uint32_t slot; /* of the file extent */
	uint32_t info;
	uint64_t bytenr, sectors;
};

/* What leaves say: one thread's part of it. */
struct usage_leaf_reader {
	struct set_memo memo;
	size_t hint;
	bool astray; /* an extent was not near the one before: others will not be either, and are looked for together */
	struct usage_named waiting[USAGE_FIND_MANY];
	size_t num_waiting;
	uint32_t set; /* of the leaf before, and its weight */
	uint32_t weight;
	struct btrkit_usage_types types; /* what is inline, and what is referenced */
	struct usage_list orphans;	 /* struct usage_orphans */
};

struct usage_orphans {
	uint32_t set;
	uint64_t n;
};

int usage_read_leaf(struct usage_work *w, struct usage_leaf_reader *r, const uint8_t *leaf, uint32_t set,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What a reader has gathered goes into the answer. By one thread at a time. */
void usage_leaf_gathered(struct usage_work *w, struct usage_leaf_reader *r);

/* Blocks and extents that only pointers to them tell of go into the tables. */
int usage_merge_blocks(struct usage_work *w, unsigned level, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_merge_extents(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* One more in a list of strays, which is put in order, each place once, when it is full. By one thread at a time. */
int usage_strays_add(struct usage_work *w, struct usage_list *l, const struct usage_stray *s,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
int usage_strays_tidy(struct usage_work *w, struct usage_list *l, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* One more extent, by any thread. */
int usage_stray_extent(struct usage_work *w, const struct usage_stray *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Where the extent tree cannot be read: what of it the trees of the filesystem itself have. */
int usage_own_trees(struct usage_work *w, struct usage_reacher *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The log trees. */
int usage_load_logs(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The sums, by sets and by owners. */
int usage_sum(struct usage_work *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void usage_extent_describe(const struct btrkit_usage *u, const struct usage_extent *e, struct btrkit_usage_extent *ret);
void usage_space_add(struct btrkit_usage_space *to, const struct btrkit_usage_space *more);

#endif
