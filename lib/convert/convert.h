/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CONVERT_CONVERT_H
#define BTRKIT_CONVERT_CONVERT_H

/*
 * The caches of free space are changed: what is to be done is found out and counted first, then done in a few
 * transactions, each of which leaves a whole filesystem.
 */

#include <btrkit/space.h>

#include "lib/convert/progress.h"
#include "lib/convert/v1_files.h"
#include "lib/tree/filesystem.h"

/* What the private blocks of a transaction may take in memory, about. */
#define CONVERT_HELD_BYTES (16u << 20)
/* Leaves that change with an extent of a v1 file at the most: of its item, its block group's, and its free space. */
#define CONVERT_FILE_BLOCKS 3u

struct btrkit_txn;
struct free_space_built;

struct conversion {
	struct btrkit_fs *fs;
	const struct btrkit_space_change_options *opts;
	struct progress progress;
	uint64_t held_bytes; /* when a transaction gets near it, it is committed and another one begun */
	/* What there is. */
	bool have_tree;	 /* a free space tree, whatever the superblock says of it */
	bool distrusted; /* it says something wrong though the superblock says that it is valid */
	struct v1_count v1;
	/* What is to be done. */
	bool clear_v1, drop_v2, build_v2;
	uint64_t compat_ro, cache_generation; /* of the superblock afterwards */
	uint64_t blocks;		      /* new and copied ones, the most that a transaction needs */
	struct btrkit_space_change sum;
};

/* btrkit_space_convert() with another cv->held_bytes. */
int convert_holding(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
		    const struct btrkit_space_change_options *opts, uint64_t held_bytes,
		    struct btrkit_space_change *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Reads all that will be read later, and counts it: what the free space tree will be, how many blocks everything takes.
 * Fills in cv->sum and cv->blocks.
 * @return 0; -EUCLEAN: the extent tree contradicts itself; <0
 */
int convert_count(struct conversion *cv, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void convert_take_built(struct conversion *cv, const struct free_space_built *built);

/* Does it. @return 0; <0, with the filesystem as the last commit left it */
int convert_run(struct conversion *cv, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Commits, and begins another transaction. On failure *txn is NULL. */
int convert_next_txn(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes the v1 cache, in as many transactions as its size asks for. *txn is the first, and on success the last, which
 * is still open; on failure it may be NULL.
 */
int convert_clear_v1(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Builds the free space tree, in a transaction that keeps none up so far. */
int convert_build_v2(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
