/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_UNDO_WITNESS_H
#define BTRKIT_COMMIT_UNDO_WITNESS_H

/* What the undo file gets of space that a transaction frees. */

#include "lib/commit/txn.h"

/*
 * Freed space is not overwritten, but undo needs its contents, and Linux may discard them without even writing a
 * superblock. So the undo file gets tree blocks that were freed, and samples of freed data. Undo refuses if these have
 * changed.
 */
int undo_witness_keep(struct btrkit_txn *txn, const struct space_group *g, const struct space_change *c,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether there is an undo file. */
bool undo_witness_wanted(const struct btrkit_txn *txn);

#endif
