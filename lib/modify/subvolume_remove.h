/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_SUBVOLUME_REMOVE_H
#define BTRKIT_MODIFY_SUBVOLUME_REMOVE_H

/* The steps of btrkit_txn_subvolume_delete(). The transaction may be committed after each of them. */

#include "lib/modify/roots.h"
#include "lib/tree/drop.h"

/* Removes the name; from then on the subvolume will be dropped in any case. @return as btrkit_txn_subvolume_delete() */
int subvolume_take_name(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Deletes a subvolume if it is empty and still at that place. @return as btrkit_txn_subvolume_delete(); -ENOTEMPTY */
int subvolume_remove_empty(struct btrkit_txn *txn, uint64_t id, const struct roots_place *at,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops a part of the tree, changing about @refs references. @return 0; -ENOSPC: nothing was changed; <0 */
int subvolume_drop_some(struct btrkit_txn *txn, struct tree_drop *d, uint64_t refs, bool *done,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
