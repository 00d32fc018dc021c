/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_SETTLE_H
#define BTRKIT_COMMIT_SETTLE_H

/* Brings the trees that describe other trees up to date: see txn.h. */

#include "lib/commit/txn.h"

/* Updates the trees that describe other trees, until nothing is pending. */
int commit_settle(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Updates the ROOT_ITEM of a tree, as the commit does. Not during an edit. */
int txn_write_root(struct btrkit_txn *txn, struct edit_tree *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Applies references until none are pending, without updating root items. Needed before a whole tree is read that must
 * be up to date. Waiting checksums are inserted first, so that those of freed extents can be deleted. Not during an
 * edit.
 */
int txn_run_refs(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
