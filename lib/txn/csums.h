/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_CSUMS_H
#define BTRKIT_TXN_CSUMS_H

/* The checksums of data that a transaction writes, and of data that goes. */

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

/* Those of the sectors from @logical on: @size bytes. @return 0; -ENOMEM */
int csums_add(struct btrkit_txn *txn, uint64_t logical, const uint8_t *sums, size_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* All of these go into the tree, where nothing else is left of that range. @return 0; <0 */
int csums_run(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void csums_free(struct csums *c);

/* Whether the last commit has checksums for any of that range. @return 0: it has none; 1; <0 */
int csums_exist(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Data of that range is gone, and its checksums go. @return 0; <0 */
int csums_trim(struct btrkit_txn *txn, const struct range *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The last item of checksums that begins before @logical: what data it is of. @return 0; 1: there is none; <0 */
int csums_before(struct cursor *c, uint64_t logical, struct range *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
