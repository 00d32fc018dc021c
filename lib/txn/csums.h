/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_CSUMS_H
#define BTRKIT_TXN_CSUMS_H

/* The checksums of data that a transaction writes, and of data that goes. */

#include "lib/base/pool.h"
#include "lib/space/range.h"

#include <btrkit/error.h>

struct btrkit_txn;
struct csum_run;

struct csums {
	struct csum_run *runs;
	size_t n, room;
	struct pool pool;
};

/* Those of the sectors from @logical on: @size bytes. @return 0; -ENOMEM */
int csums_add(struct btrkit_txn *txn, uint64_t logical, const uint8_t *sums, size_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* All of these go into the tree. @return 0; <0 */
int csums_run(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void csums_free(struct csums *c);

/* Whether the last commit has checksums for any of that range. @return 0: it has none; 1; <0 */
int csums_exist(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Data of that range is gone, and its checksums go. @return 0; <0 */
int csums_trim(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
