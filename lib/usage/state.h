/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_STATE_H
#define BTRKIT_USAGE_STATE_H

/* Data shared by the parts of lib/usage. */

#include <btrkit/usage.h>

#include "lib/base/array.h"
#include "lib/base/pipeline.h"
#include "lib/sweep/drop.h"
#include "lib/tree/filesystem.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/table.h"

#define USAGE_BATCH_BYTES (512u << 10) /* tree blocks per batch */

/* The root of a tree of an owner. */
struct usage_root {
	struct tree_root root;
	uint32_t refs;
	uint32_t owner; /* its number in sets */
	uint8_t uuid[UUID_SIZE], parent_uuid[UUID_SIZE];
	struct sweep_drop drop; /* whether it is a subvolume being dropped, which has lost a part */
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
	struct array reported; /* struct usage_location, sorted: reported damage */
};

struct usage_location {
	uint64_t logical, slot; /* slot UINT64_MAX: the whole block */
};
#define USAGE_REPORTED_MAX 65536u

/* Converts a length to sectors as in tables. Returns 0, which no extent has, if it does not fit. */
static inline uint32_t usage_sectors(const struct btrkit_usage *u, uint64_t bytes)
{
	return bytes / u->sectorsize > UINT32_MAX ? 0 : (uint32_t)(bytes / u->sectorsize);
}

/* A block or extent that something refers to, but that the extent tree lacks or describes differently. */
struct usage_stray {
	uint64_t bytenr;
	uint64_t generation; /* of a tree block */
	uint32_t set;
	uint32_t digest;	/* of a tree block */
	uint32_t sectors, info; /* data extents only */
};

struct usage_work {
	struct btrkit_usage *u;
	struct btrkit_fs *fs;
	struct btrkit_usage_options opts;
	unsigned threads;     /* 0: only the caller's thread */
	pthread_mutex_t lock; /* protects strays, pending and calls of opts.damage() */
	struct array roots;   /* struct usage_root */
	struct array own;     /* struct tree_root: trees of the filesystem itself */
	struct array v1;      /* struct usage_stray: extents of the v1 cache */
	struct array lost;    /* struct sweep_lost */
	struct array strays[LEVELS_MAX];
	struct array data_strays;
	struct array dropped;		 /* struct usage_dropped */
	uint32_t filesystem;		 /* the set of the filesystem itself */
	uint64_t bytes_after_collection; /* memory of the sets after the last collection */
	struct array pending;		 /* see usage_add_later(); all of one table */
	uint64_t *orphans;		 /* by inner number: difference to the previous owner */
	uint64_t done, due;		 /* for progress */
};

/* Returns the number of blocks per batch. */
static inline size_t usage_batch_blocks(const struct usage_work *w)
{
	return USAGE_BATCH_BYTES / w->fs->geometry.nodesize;
}

#endif
