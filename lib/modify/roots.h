/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ROOTS_H
#define BTRKIT_MODIFY_ROOTS_H

/* Changes to subvolumes in the root tree and the UUID tree. Callers are exclusive and hold the lock of the trees. */

#include "lib/format/items/root.h"
#include "lib/modify/names/names.h"

/* Tree blocks that changing one item of these trees may take. */
#define ROOTS_BLOCKS 10u

/* A ROOT_ITEM with all its fields. It is changed here and written back with roots_put(). */
struct roots_item {
	struct btrkit_key key;
	struct disk_root_item d;
};

/* Gets the item in its current state. @return 0; -ENOENT: no such subvolume, or it is being deleted; <0 */
int roots_get(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gets the item of a subvolume that is being deleted. @return 0; -ENOENT: there is none; <0 */
int roots_get_dead(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_put(struct btrkit_txn *txn, const struct roots_item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Inserts the item of a new tree that is open for editing, adds its UUIDs and, if quotas are on, a qgroup. */
int roots_insert(struct btrkit_txn *txn, const struct edit_tree *t, struct disk_root_item *d,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Checks that subvolumes may be created and deleted: simple quotas are not maintained. @return 0; -EOPNOTSUPP */
int roots_check_quotas(const struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Gets an id that no subvolume has, or had since the filesystem was opened. @return 0; -ENOSPC; <0 */
int roots_take_id(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The place of a subvolume in a directory. */
struct roots_place {
	uint64_t parent; /* the id of the parent subvolume */
	uint64_t dir, index;
	struct name name;
};
int roots_link(struct btrkit_txn *txn, uint64_t id, const struct roots_place *place,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds the place of a subvolume, without changing anything; @name: storage for its name. @return 0; -ENOENT: it is in
 * no directory; <0
 */
int roots_find(struct btrkit_txn *txn, uint64_t id, struct roots_place *ret, char name[NAME_LEN_MAX],
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_unlink(struct btrkit_txn *txn, uint64_t id, uint64_t parent, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Adds or removes a subvolume's UUIDs, except those that are zero, in the UUID tree, if there is one. */
int roots_add_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_drop_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes only the received UUID. */
int roots_drop_received(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
