/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_COPIES_H
#define BTRKIT_SWEEP_COPIES_H

/* Reads and verifies every copy of tree blocks, without the cache. */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"
#include "lib/volume/volume.h"

#define SWEEP_COPIES_MAX 4u /* RAID1C4 */

/* Who is told about damage. */
struct sweep_copies {
	const struct btrkit_fs *fs;
	/* A bad copy of a block that has a good one. @why: without location */
	void (*bad)(void *ctx, const struct node_ref *ref, const struct copy *copy, const struct btrkit_error *why);
	/* A block without a good copy, which could not be rebuilt either; or -ENOMEM */
	void (*unreadable)(void *ctx, const struct node_ref *ref, int ret, const struct btrkit_error *why);
	void *ctx;
};

/* Reads every copy of a block. @return whether @buf has a good one */
bool sweep_copies_block(const struct sweep_copies *s, const struct node_ref *ref, uint8_t *buf);

/* Adjacent blocks that a thread reads at once. Two copies of a run fit into the cache of one core. */
#define SWEEP_RUN_BYTES (128u << 10)
#define SWEEP_RUN_BLOCKS 32u /* the maximum, with 4096-byte blocks */
struct sweep_run {
	uint8_t *blocks; /* contiguous */
	uint8_t *others; /* another copy, for comparison */
	size_t max;	 /* capacity in blocks */
};

/* @return 0; -ENOMEM */
int sweep_run_init(const struct btrkit_fs *fs, struct sweep_run *run, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void sweep_run_release(struct sweep_run *run);
/*
 * Reads as many blocks, starting with the first, as one request can cover; the addresses in @refs are adjacent.
 * good[i]: whether run->blocks has a good copy of block i.
 * @return the number of blocks read, at least one
 */
size_t sweep_copies_run(const struct sweep_copies *s, struct sweep_run *run, const struct node_ref *refs, size_t n,
			bool *good);
/* Requests readahead of all copies of @n adjacent blocks. */
void sweep_copies_prefetch(const struct btrkit_fs *fs, uint64_t logical, size_t n);

#endif
