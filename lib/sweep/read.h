/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_READ_H
#define BTRKIT_SWEEP_READ_H

/*
 * Reads blocks without the cache, because each is read only once. Contiguous blocks are read in one request from the
 * first copy. A block that does not verify is read again by itself, from any good copy.
 */

#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

/* Called for block number @i if no copy of it is good. @return 0: the others are read; otherwise ends the reading */
typedef int (*sweep_unreadable_fn)(void *ctx, size_t i, int ret, struct btrkit_error *what, struct btrkit_error *err);

/*
 * Reads blocks into @buf one after another. ok[i] is set if block i was read.
 * @return 0, or what @unreadable returned
 */
int sweep_read(const struct btrkit_fs *fs, const struct node_ref *refs, size_t n, uint8_t *buf, bool *ok,
	       sweep_unreadable_fn unreadable, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
