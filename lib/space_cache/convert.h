/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_CACHE_CONVERT_H
#define BTRKIT_SPACE_CACHE_CONVERT_H

/*
 * Changes the free space caches. What has to be done is determined and counted first, and then done in a few
 * transactions, each of which leaves a consistent filesystem.
 */

#include <btrkit/space.h>

#include "lib/space_cache/progress.h"
#include "lib/space_cache/v1_files.h"
#include "lib/tree/filesystem.h"

/* Approximate limit for the memory of a transaction's private blocks. */
#define CONVERT_HELD_BYTES (16u << 20)
/*
 * Maximum number of leaves changed by removing an extent of a v1 file: those with its extent item, its block group
 * item, and its free space.
 */
#define CONVERT_FILE_BLOCKS 3u

struct btrkit_txn;
struct free_space_built;

struct conversion {
	struct btrkit_fs *fs;
	const struct btrkit_space_change_options *opts;
	struct progress progress;
	uint64_t held_bytes; /* when the transaction approaches this size, it is committed and another one is started */
	/* The current state. */
	bool have_tree;	 /* a free space tree exists, whatever the superblock says about it */
	bool distrusted; /* it is wrong although the superblock marks it as valid */
	struct v1_count v1;
	/* What has to be done. */
	bool clear_v1, drop_v2, build_v2;
	uint64_t compat_ro, cache_generation; /* final values in the superblock */
	uint64_t blocks;		      /* new and copied blocks, maximum needed by one transaction */
	struct btrkit_space_change sum;
};

/* btrkit_space_convert() with a given value of cv->held_bytes. */
int convert_holding(struct btrkit_fs *fs, enum btrkit_space_cache_kind to,
		    const struct btrkit_space_change_options *opts, uint64_t held_bytes,
		    struct btrkit_space_change *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In count.c: */
/*
 * Reads everything that will be read later, and counts what the conversion will do: contents of the free space tree,
 * and number of blocks needed. Sets cv->sum and cv->blocks.
 * @return 0; -EUCLEAN: the extent tree is inconsistent; <0
 */
int convert_count(struct conversion *cv, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void convert_take_built(struct conversion *cv, const struct free_space_built *built);

/* In run.c: */
/* Does the conversion. @return 0; <0, with the filesystem in the state of the last commit */
int convert_run(struct conversion *cv, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Commit, and start another transaction. On failure *txn is NULL. */
int convert_next_txn(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In rehearse.c: */
/* Does the conversion without writing, in memory, and sets cv->sum as convert_run() does. @return 0; <0 */
int convert_rehearse(struct conversion *cv, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In clear_v1.c: */
/*
 * Removes the v1 cache, in as many transactions as its size requires. *txn is the first one, and on success set to the
 * last one, which is still open. On failure it may be NULL.
 */
int convert_clear_v1(struct conversion *cv, struct btrkit_txn **txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In build_v2.c: */
/* Builds the free space tree, in a transaction that does not maintain one yet. */
int convert_build_v2(struct conversion *cv, struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
