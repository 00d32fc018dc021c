/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_READ_H
#define BTRKIT_CHECK_READ_H

#include "lib/check/state.h"

#define CHECK_COPIES_MAX 4u /* RAID1C4 */

/*
 * Reads every copy of a block, bypassing the cache, and verifies each against @ref. Damage is reported for the tree of
 * its owner.
 * @return whether @buf has a good copy
 */
bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf);
/* Adjacent blocks that a thread reads at once. Two copies of a run fit into the cache of one core. */
#define CHECK_RUN_BYTES (128u << 10)
#define CHECK_RUN_BLOCKS 32u /* the maximum, with 4096-byte blocks */
struct check_run {
	uint8_t *blocks; /* contiguous */
	uint8_t *others; /* another copy, for comparison */
	size_t max;	 /* capacity in blocks */
};
/* @return 0, or what check_fail() returned */
int check_run_init(struct check *c, struct check_run *run);
void check_run_release(struct check_run *run);
/*
 * Reads as many blocks, starting with the first, as one request can cover; the addresses in @refs are adjacent. Each
 * block is verified and reported as by check_read_block(). @good: for each block, whether run->blocks has a good copy.
 * @return the number of blocks read, at least one
 */
size_t check_read_run(struct check *c, struct check_run *run, const struct node_ref *refs, size_t n, bool *good);
/* Requests readahead of all copies of @n adjacent blocks. */
void check_request(struct check *c, uint64_t logical, size_t n);
/* Wraps a block in memory in a struct node that borrows it; it is not reference-counted. */
struct node check_node(const struct check *c, const uint8_t *block);

#endif
