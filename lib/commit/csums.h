/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_CSUMS_H
#define BTRKIT_COMMIT_CSUMS_H

/*
 * Checksums of data that a transaction writes or removes. csum_add.c collects and inserts those of new data,
 * csum_trim.c finds and removes those of others.
 */

#include "lib/base/pool.h"
#include "lib/space/range.h"

#include <btrkit/error.h>

struct btrkit_txn;
struct csum_run;
struct cursor;

struct csums {
	struct csum_run *runs;
	size_t n, room;
	struct pool pool;
};

/* In csum_add.c: */
/* Adds the checksums of the sectors from @logical on, @size bytes of them. @return 0; -ENOMEM */
int csums_add(struct btrkit_txn *txn, uint64_t logical, const uint8_t *sums, size_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Inserts all added checksums into the tree, and removes any others of the same ranges. @return 0; <0 */
int csums_run(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void csums_free(struct csums *c);

/* In csum_trim.c: */
/* Whether the last commit has checksums for any part of that range. @return 0: no; 1: yes; <0 */
int csums_exist(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Deletes the checksums of a range of data that was removed. @return 0; <0 */
int csums_trim(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Finds the last checksum item that begins before @logical. @ret: range of its data. @return 0; 1: there is none; <0 */
int csums_before(struct cursor *c, uint64_t logical, struct range *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
