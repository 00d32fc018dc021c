// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes to existing subvolumes: the default, and the read-only flag. */
#include <btrkit/subvolume_modify.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/format/feature_bits.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/names/entries.h"
#include "lib/modify/roots.h"

static const struct ticket_need nothing_waits = { .removes = true };
static const struct ticket_exclusive few_items = { .blocks = 4 * ROOTS_BLOCKS };

/* Makes the entry "default" lead to the tree with @key. */
static int point_default(struct btrkit_txn *txn, const struct btrkit_key *key, struct btrkit_error *err)
{
	static const char name[] = "default";
	const struct btrkit_key at = KEY(OID_ROOT_TREE_DIR, KEY_DIR_ITEM, dir_name_hash(name, sizeof(name) - 1));
	const struct disk_key location = key_put(key);
	struct edit_tree *roots;
	struct dir_entry entry;
	uint32_t offset, size;
	uint8_t *bytes;
	int ret;

	ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);
	if (!ret)
		ret = cursor_find(&roots->c, &at, err);
	if (!ret)
		ret = cursor_blame(&roots->c,
				   entry_find(&roots->c.item, name, sizeof(name) - 1, &entry, &offset, err), err);
	if (ret == 1)
		return err_set(err, BTRKIT_NOT_FOUND, "the root tree has no entry for the default subvolume");
	if (!ret)
		ret = edit_bytes(roots, &at, &bytes, &size, err);
	if (ret)
		return ret;
	memcpy(bytes + offset + offsetof(struct disk_dir_item, location), &location, sizeof(location));
	txn->super.incompat_flags = le64_put(le64_get(txn->super.incompat_flags) | INCOMPAT_DEFAULT_SUBVOL);
	return 0;
}

int btrkit_txn_subvolume_set_default(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	struct subvolume s;
	struct op op;
	int ret;

	ret = op_begin_nowhere(&op, txn, &nothing_waits, &few_items, err);
	if (ret)
		return ret;
	sync_lock_trees(&op.txn->sync);
	ret = subvolume_get(txn->fs, id, &s, err);
	if (!ret)
		ret = point_default(txn, &KEY(id, KEY_ROOT_ITEM, s.root.key_offset), err);
	sync_unlock_trees(&op.txn->sync);
	return op_end_exclusive(&op, ret, err);
}

/* Clears what identifies the subvolume as received. */
static int forget_received(struct op *op, struct roots_item *item, struct btrkit_error *err)
{
	int ret = roots_drop_received(op->txn, item->key.objectid, &item->d, err);

	memset(item->d.received_uuid, 0, sizeof(item->d.received_uuid));
	item->d.stransid = le64_put(0);
	item->d.stime = (struct disk_time){ le64_put(0), le32_put(0) };
	item->d.rtransid = le64_put(op->txn->generation);
	item->d.rtime = op->now;
	return ret;
}

static int set_read_only(struct op *op, uint64_t id, bool read_only, bool forget, struct btrkit_error *err)
{
	struct roots_item item;
	uint64_t flags;
	int ret = roots_get(op->txn, id, &item, err);

	if (ret)
		return ret;
	flags = le64_get(item.d.flags);
	if (read_only == !!(flags & ROOT_SUBVOL_RDONLY))
		return 0;
	if (!read_only && !base_uuid_is_none(item.d.received_uuid)) {
		if (!forget)
			return err_system(err, EPERM, "subvolume %" PRIu64 " has a received UUID", id);
		ret = forget_received(op, &item, err);
	}
	item.d.flags = le64_put(read_only ? flags | ROOT_SUBVOL_RDONLY : flags & ~ROOT_SUBVOL_RDONLY);
	if (!ret)
		ret = roots_put(op->txn, &item, err);
	if (!ret)
		delayed_set_read_only(op->d, id, read_only);
	return ret;
}

int btrkit_txn_subvolume_set_read_only(struct btrkit_txn *txn, uint64_t id, bool read_only, bool forget_received,
				       struct btrkit_error *err)
{
	struct op op;
	int ret = op_begin_nowhere(&op, txn, &nothing_waits, &few_items, err);

	if (ret)
		return ret;
	sync_lock_trees(&op.txn->sync);
	ret = set_read_only(&op, id, read_only, forget_received, err);
	sync_unlock_trees(&op.txn->sync);
	return op_end_exclusive(&op, ret, err);
}
