// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/commit/conversion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/tree/edit_path.h"
#include "lib/volume/volume.h"

/* What the filesystem had before. */
struct converting {
	struct node_rules rules;
	struct geometry geometry;
	struct item_ctx items;
};

static int check_data_sums(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	int ret = fs_try_root(txn->fs, OID_CSUM_TREE, &root, NULL, err);

	if (ret)
		return ret < 0 ? ret : 0;
	cursor_init(&c, txn->fs, &root);
	ret = cursor_seek(&c, &KEY(0, 0, 0), err);
	cursor_release(&c);
	if (ret)
		return ret < 0 ? ret : 0;
	return err_set(err, BTRKIT_UNSUPPORTED, "there are checksums of data, which would have to be converted, too");
}

static void set_fsid(struct btrkit_txn *txn, const struct conversion *to)
{
	const bool separate = le64_get(txn->super.incompat_flags) & INCOMPAT_METADATA_UUID;
	struct disk_super *super = &txn->super;
	uint64_t incompat = le64_get(super->incompat_flags);

	if (to->keeps_blocks) {
		if (!separate)
			memcpy(super->metadata_uuid, super->fsid, sizeof(super->metadata_uuid));
		incompat |= INCOMPAT_METADATA_UUID;
	} else {
		memset(super->metadata_uuid, 0, sizeof(super->metadata_uuid));
		incompat &= ~INCOMPAT_METADATA_UUID;
		memcpy(txn->fs->rules.fsid, to->fsid, sizeof(txn->fs->rules.fsid));
	}
	super->incompat_flags = le64_put(incompat);
	memcpy(super->fsid, to->fsid, sizeof(super->fsid));
}

int conversion_begin(struct btrkit_txn *txn, const struct conversion *to, struct btrkit_error *err)
{
	const bool other_csum = to->csum && to->csum != txn->fs->geometry.csum;
	struct btrkit_fs *fs = txn->fs;
	struct converting *old;
	int ret;

	if (txn->converting)
		return err_set(err, BTRKIT_INVALID, "a conversion is under way in this transaction");
	if (to->fsid && volume_num_devices(fs->volume) > 1)
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "changing the fsid is not supported with %zu devices: a crash between writing their "
			       "superblocks would leave different fsids",
			       volume_num_devices(fs->volume));
	ret = other_csum ? check_data_sums(txn, err) : 0;
	if (ret)
		return ret;
	old = malloc(sizeof(*old));
	if (!old)
		return err_nomem(err);
	*old = (struct converting){ fs->rules, fs->geometry, fs->items };
	txn->converting = old;
	fs->rules.also = &old->rules;
	if (other_csum) {
		txn->super.csum_type = le16_put(to->csum->type);
		fs->rules.csum = fs->geometry.csum = to->csum;
		fs->items.csum_type = to->csum->type;
		fs->items.csum_size = to->csum->size;
	}
	if (to->fsid)
		set_fsid(txn, to);
	return 0;
}

void conversion_end(struct btrkit_txn *txn, bool committed)
{
	struct converting *old = txn->converting;

	if (!old)
		return;
	if (committed) {
		txn->fs->rules.also = NULL;
	} else {
		txn->fs->rules = old->rules;
		txn->fs->geometry = old->geometry;
		txn->fs->items = old->items;
	}
	txn->converting = NULL;
	free(old);
}

/* Finds the leaf of the first item not below @at, and makes it and all blocks above private. *@at: past the leaf */
static int copy_leaf(struct edit_tree *t, struct btrkit_key *at, struct btrkit_error *err)
{
	struct btrkit_key first;
	struct cursor c;
	uint32_t size;
	uint8_t *data;
	int ret;

	cursor_init(&c, t->overlay->fs, &t->c.root);
	ret = cursor_seek(&c, at, err);
	if (!ret) {
		first = c.item.key;
		*at = node_key(cursor_leaf(&c), cursor_leaf(&c)->nritems - 1);
	}
	cursor_release(&c);
	return ret ? ret : edit_bytes(t, &first, &data, &size, err);
}

/* An empty tree has only its root. */
static int copy_empty(struct edit_tree *t, struct btrkit_error *err)
{
	bool exact;
	int ret = edit_find_leaf(t, &KEY(0, 0, 0), &exact, err);

	return ret < 0 ? ret : edit_ended(t, edit_cow_path(t, 0, err), err);
}

static bool step(struct btrkit_key *key)
{
	if (++key->offset || ++key->type || ++key->objectid)
		return true;
	return false;
}

static int copy_tree(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(0, 0, 0);
	struct edit_tree *t;
	bool any = false;
	int ret = overlay_tree(txn->overlay, id, &t, err);

	while (!ret && !(ret = copy_leaf(t, &at, err))) {
		any = true;
		if (!step(&at))
			break;
	}
	if (ret == 1)
		ret = any ? 0 : copy_empty(t, err);
	return ret;
}

/* Enters the fsid of blocks into the device items, where Linux expects it. */
static int convert_devices(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	struct btrkit_key at = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0);
	struct edit_tree *t;
	int ret = overlay_tree(txn->overlay, OID_CHUNK_TREE, &t, err);

	while (!ret) {
		struct cursor c;
		uint32_t size;
		uint8_t *data;

		cursor_init(&c, fs, &t->c.root);
		ret = cursor_seek(&c, &at, err);
		if (!ret && (c.item.key.objectid != OID_DEV_ITEMS || c.item.key.type != KEY_DEV_ITEM))
			ret = 1;
		if (!ret)
			at = c.item.key;
		cursor_release(&c);
		if (!ret)
			ret = edit_bytes(t, &at, &data, &size, err);
		if (!ret) {
			memcpy(((struct disk_dev_item *)data)->fsid, fs->rules.fsid, sizeof(fs->rules.fsid));
			at.offset++;
		}
	}
	return ret < 0 ? ret : 0;
}

/* Copies the trees that the root tree names, in the order of their items. */
static int copy_trees(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(0, 0, 0);
	int ret = 0;

	while (!ret) {
		struct cursor c;

		cursor_init(&c, txn->fs, &txn->fs->root_tree);
		ret = cursor_seek(&c, &at, err);
		if (!ret)
			at = c.item.key;
		cursor_release(&c);
		if (!ret && at.type == KEY_ROOT_ITEM)
			ret = copy_tree(txn, at.objectid, err);
		if (!ret && !step(&at))
			break;
	}
	return ret < 0 ? ret : 0;
}

int conversion_copy_blocks(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret;

	sync_lock_trees(&txn->sync);
	ret = copy_trees(txn, err);
	if (!ret)
		ret = copy_tree(txn, OID_ROOT_TREE, err);
	if (!ret)
		ret = copy_tree(txn, OID_CHUNK_TREE, err);
	if (!ret)
		ret = convert_devices(txn, err);
	sync_unlock_trees(&txn->sync);
	return failure_note_any(txn->failure, ret, err);
}
