/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_ROOTS_H
#define BTRKIT_MODIFY_ROOTS_H

/* What the trees that describe them say of subvolumes. For who is alone and has locked the trees. */

#include "lib/format/items/root.h"
#include "lib/modify/names.h"

/* Tree blocks that one change of an item of these trees may take. */
#define ROOTS_BLOCKS 10u

/* A ROOT_ITEM with all its fields, to be changed and put back. */
struct roots_item {
	struct btrkit_key key;
	struct disk_root_item d;
};

/* As it would be committed now. @return 0; -ENOENT: no such subvolume, or it is being deleted; <0 */
int roots_get(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Of one that is being deleted. @return 0; -ENOENT: there is none; <0 */
int roots_get_dead(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_put(struct btrkit_txn *txn, const struct roots_item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* One that was not there, of a tree that is open for editing, and its UUIDs. Also what quotas count it by. */
int roots_insert(struct btrkit_txn *txn, const struct edit_tree *t, struct disk_root_item *d,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether subvolumes may be made and deleted: their simple quotas would not be kept up. @return 0; -EOPNOTSUPP */
int roots_judge_quotas(const struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A number that no subvolume has or had since the filesystem was opened. @return 0; -ENOSPC; <0 */
int roots_take_id(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Where a subvolume lies. */
struct roots_place {
	uint64_t parent; /* the subvolume */
	uint64_t dir, index;
	struct name name;
};
int roots_link(struct btrkit_txn *txn, uint64_t id, const struct roots_place *place,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* @name gets the name. It changes nothing. @return 0; -ENOENT: it lies in no directory; <0 */
int roots_find(struct btrkit_txn *txn, uint64_t id, struct roots_place *ret, char name[NAME_LEN_MAX],
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_unlink(struct btrkit_txn *txn, uint64_t id, uint64_t parent, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The UUID tree, if there is one, names the subvolume by its UUIDs, but for those that are zero, or no longer does. */
int roots_add_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
int roots_drop_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Only that of what it was received from. */
int roots_drop_received(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
