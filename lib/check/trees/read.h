/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_READ_H
#define BTRKIT_CHECK_READ_H

#include "lib/check/state.h"
#include "lib/sweep/copies.h"

/*
 * Reads every copy of a block, bypassing the cache, and verifies each against @ref. Damage is reported for the tree of
 * its owner.
 * @return whether @buf has a good copy
 */
bool check_read_block(struct check *c, const struct node_ref *ref, uint8_t *buf);
/* Reads a run of blocks as sweep_copies_run() does. Each is reported as by check_read_block(). */
size_t check_read_run(struct check *c, struct sweep_run *run, const struct node_ref *refs, size_t n, bool *good);
/* Wraps a block in memory in a struct node that borrows it; it is not reference-counted. */
struct node check_node(const struct check *c, const uint8_t *block);

#endif
