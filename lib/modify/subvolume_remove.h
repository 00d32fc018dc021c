/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_SUBVOLUME_REMOVE_H
#define BTRKIT_MODIFY_SUBVOLUME_REMOVE_H

/* The steps of btrkit_txn_subvolume_delete(), after each of which the transaction may be committed. */

#include "lib/modify/roots.h"
#include "lib/tree/drop.h"

/* Takes its name, so that it is to be dropped whatever happens. @return as btrkit_txn_subvolume_delete() */
int subvolume_take_name(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Deletes one that has nothing in it and lies at a place, by its name, still. @return the same; -ENOTEMPTY */
int subvolume_remove_empty(struct btrkit_txn *txn, uint64_t id, const struct roots_place *at,
			   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Drops some of it, in which about @refs references change. @return 0; -ENOSPC: nothing has changed; <0 */
int subvolume_drop_some(struct btrkit_txn *txn, struct tree_drop *d, uint64_t refs, bool *done,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
