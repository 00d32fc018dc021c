// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/roots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/commit/settle.h"
#include "lib/format/items/qgroup.h"
#include "lib/fs/subvolume.h"

static int read_item(struct btrkit_txn *txn, const struct tree_root *root, struct roots_item *ret,
		     struct btrkit_error *err)
{
	struct edit_tree *roots;
	struct cursor *c;
	int r;

	r = txn_tree(txn, OID_ROOT_TREE, &roots, err);
	if (r)
		return r;
	c = &roots->c;
	ret->key = KEY(root->id, KEY_ROOT_ITEM, root->key_offset);
	ret->d = (struct disk_root_item){ .refs = { { 0 } } };
	r = cursor_find(c, &ret->key, err);
	if (r)
		return r < 0 ? r : err_corrupt(err, NULL, "root item of subvolume %" PRIu64 " is missing", root->id);
	memcpy(&ret->d, c->item.data, c->item.size < sizeof(ret->d) ? c->item.size : sizeof(ret->d));
	/*
	 * The fields past the short form are valid only if generation_v2 matches: Linux before 3.6 did not maintain
	 * them.
	 */
	if (le64_get(ret->d.generation_v2) != le64_get(ret->d.generation))
		memset((uint8_t *)&ret->d + ROOT_ITEM_SHORT, 0, sizeof(ret->d) - ROOT_ITEM_SHORT);
	ret->d.generation_v2 = ret->d.generation;
	return 0;
}

int roots_get(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret, struct btrkit_error *err)
{
	struct edit_tree *t;
	struct subvolume s;
	int r;

	r = subvolume_get(txn->fs, id, &s, err);
	t = r ? NULL : overlay_open_tree(txn->overlay, id);
	if (t && (t->changed || t->touched))
		r = txn_write_root(txn, t, err);
	return r ? r : read_item(txn, &s.root, ret, err);
}

int roots_get_dead(struct btrkit_txn *txn, uint64_t id, struct roots_item *ret, struct btrkit_error *err)
{
	struct tree_root root;
	struct root_item item;
	int r;

	r = fs_find_root(txn->fs, id, &root, &item, err);
	if (!r && item.refs)
		r = err_set(err, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " is not being deleted", id);
	return r ? r : read_item(txn, &root, ret, err);
}

int roots_put(struct btrkit_txn *txn, const struct roots_item *item, struct btrkit_error *err)
{
	struct edit_tree *roots;
	int ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);

	return ret ? ret : edit_replace(roots, &item->key, &item->d, sizeof(item->d), err);
}

/* Inserts an item that must not exist yet: if it does, the trees contradict each other. */
static int insert(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		  struct btrkit_error *err)
{
	int ret = edit_insert(t, key, data, size, err);

	return ret == -EEXIST ? err_corrupt(err, NULL, "item exists already, but nothing refers to it") : ret;
}

/* Adds a qgroup for the subvolume. A rescan fills it in. */
static int add_qgroup(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	const struct disk_qgroup_info info = { .generation = le64_put(txn->generation) };
	const struct disk_qgroup_limit limit = { 0 };
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct edit_tree *t;
	int ret;

	if (!txn->quotas)
		return 0;
	ret = txn_tree(txn, OID_QUOTA_TREE, &t, &own);
	if (!ret)
		ret = edit_insert(t, &KEY(0, KEY_QGROUP_INFO, id), &info, sizeof(info), &own);
	if (!ret)
		ret = edit_insert(t, &KEY(0, KEY_QGROUP_LIMIT, id), &limit, sizeof(limit), &own);
	/* Linux may have left the qgroup of a deleted subvolume with the same id. */
	return ret == -EEXIST ? 0 : err_pass(err, &own, ret);
}

int roots_insert(struct btrkit_txn *txn, const struct edit_tree *t, struct disk_root_item *d, struct btrkit_error *err)
{
	const struct tree_root *root = &t->c.root;
	struct edit_tree *roots;
	int ret;

	d->bytenr = le64_put(root->bytenr);
	d->level = root->level;
	d->generation = d->generation_v2 = le64_put(root->generation);
	ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);
	if (!ret)
		ret = insert(roots, &KEY(root->id, KEY_ROOT_ITEM, root->key_offset), d, sizeof(*d), err);
	if (!ret)
		ret = roots_add_uuids(txn, root->id, d, err);
	return ret ? ret : add_qgroup(txn, root->id, err);
}

int roots_check_quotas(const struct btrkit_txn *txn, struct btrkit_error *err)
{
	if (txn->simple_quota)
		return err_set(err, BTRKIT_UNSUPPORTED,
			       "writing is not supported: changing files while simple quotas are enabled");
	return 0;
}

int roots_take_id(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err)
{
	uint64_t id = OID_FIRST_FREE;
	struct cursor c;
	int r;

	cursor_init(&c, txn->fs, &txn->fs->root_tree);
	r = cursor_seek_back(&c, &KEY(OID_LAST_FREE, UINT8_MAX, UINT64_MAX), err);
	if (!r && c.item.key.objectid >= id)
		id = c.item.key.objectid + 1;
	cursor_release(&c);
	if (r < 0)
		return r;
	if (id < txn->writer->next_root)
		id = txn->writer->next_root;
	/* The upper 16 bits are the level of a qgroup. */
	if (id >> 48)
		return err_set(err, BTRKIT_NO_SPACE, "no more subvolume ids");
	txn->writer->next_root = id + 1;
	*ret = id;
	return 0;
}

int roots_link(struct btrkit_txn *txn, uint64_t id, const struct roots_place *place, struct btrkit_error *err)
{
	const struct disk_root_ref d = { le64_put(place->dir), le64_put(place->index),
					 le16_put((uint16_t)place->name.len) };
	uint8_t bytes[sizeof(d) + NAME_LEN_MAX];
	const uint32_t size = (uint32_t)(sizeof(d) + place->name.len);
	struct edit_tree *roots;
	int ret;

	memcpy(bytes, &d, sizeof(d));
	memcpy(bytes + sizeof(d), place->name.bytes, place->name.len);
	ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);
	if (!ret)
		ret = insert(roots, &KEY(id, KEY_ROOT_BACKREF, place->parent), bytes, size, err);
	return ret ? ret : insert(roots, &KEY(place->parent, KEY_ROOT_REF, id), bytes, size, err);
}

static int add_uuid(struct edit_tree *t, uint8_t type, const uint8_t uuid[16], uint64_t id, struct btrkit_error *err)
{
	const le64 mine = le64_put(id);
	struct btrkit_key key;
	uint8_t *bytes;
	le64 half[2];
	uint32_t size;
	int ret;

	if (base_uuid_is_none(uuid))
		return 0;
	memcpy(half, uuid, sizeof(half));
	key = KEY(le64_get(half[0]), type, le64_get(half[1]));
	ret = cursor_find(&t->c, &key, err);
	if (ret < 0)
		return ret;
	if (ret == 1)
		return edit_insert(t, &key, &mine, sizeof(mine), err);
	/* Several subvolumes may have been received from the same one. */
	size = t->c.item.size;
	for (uint32_t i = 0; i + sizeof(mine) <= size; i += (uint32_t)sizeof(mine))
		if (!memcmp(t->c.item.data + i, &mine, sizeof(mine)))
			return 0;
	/* As in Linux, a received subvolume is not recorded if the item is full. */
	if (type == KEY_UUID_RECEIVED_SUBVOL &&
	    size + sizeof(mine) > leaf_room(t->overlay->fs->geometry.nodesize) - sizeof(struct disk_item))
		return 0;
	bytes = malloc(size + sizeof(mine));
	if (!bytes)
		return err_nomem(err);
	memcpy(bytes, t->c.item.data, size);
	memcpy(bytes + size, &mine, sizeof(mine));
	ret = edit_replace(t, &key, bytes, size + (uint32_t)sizeof(mine), err);
	free(bytes);
	return ret;
}

int roots_add_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d, struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_try_tree(txn->overlay, OID_UUID_TREE, &t, err);

	/* If there is no UUID tree, Linux creates it from the root items. */
	if (ret)
		return ret < 0 ? ret : 0;
	ret = add_uuid(t, KEY_UUID_SUBVOL, d->uuid, id, err);
	return ret ? ret : add_uuid(t, KEY_UUID_RECEIVED_SUBVOL, d->received_uuid, id, err);
}

int roots_find(struct btrkit_txn *txn, uint64_t id, struct roots_place *ret, char name[NAME_LEN_MAX],
	       struct btrkit_error *err)
{
	struct root_ref ref;
	struct cursor c;
	int r;

	cursor_init(&c, txn->fs, &txn->fs->root_tree);
	r = cursor_seek(&c, &KEY(id, KEY_ROOT_BACKREF, 0), err);
	if (!r && (c.item.key.objectid != id || c.item.key.type != KEY_ROOT_BACKREF))
		r = 1;
	if (r == 1)
		r = err_set(err, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " is not in any directory", id);
	else if (!r)
		r = cursor_blame(&c, root_ref_decode(&c.item, &ref, err), err);
	if (!r && !oid_is_file_tree(c.item.key.offset))
		r = cursor_blame(&c, err_corrupt(err, NULL, "the parent of the subvolume is not a subvolume"), err);
	if (!r && ref.name_len > NAME_LEN_MAX)
		r = cursor_blame(&c, err_corrupt(err, "name_len", "name of %u bytes", ref.name_len), err);
	if (!r) {
		memcpy(name, ref.name, ref.name_len);
		*ret = (struct roots_place){ c.item.key.offset, ref.dirid, ref.sequence, { name, ref.name_len } };
	}
	cursor_release(&c);
	return r;
}

int roots_unlink(struct btrkit_txn *txn, uint64_t id, uint64_t parent, struct btrkit_error *err)
{
	struct edit_tree *roots;
	int ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);

	if (!ret)
		ret = edit_delete(roots, &KEY(id, KEY_ROOT_BACKREF, parent), err);
	if (!ret)
		ret = edit_delete(roots, &KEY(parent, KEY_ROOT_REF, id), err);
	return ret == -ENOENT ?
		       err_corrupt(err, NULL, "subvolume %" PRIu64 " has only one of ROOT_REF and ROOT_BACKREF", id) :
		       ret;
}

static int drop_uuid(struct edit_tree *t, uint8_t type, const uint8_t uuid[16], uint64_t id, struct btrkit_error *err)
{
	struct btrkit_key key;
	const le64 mine = le64_put(id);
	uint8_t *bytes;
	le64 half[2];
	uint32_t size, kept = 0;
	int ret;

	memcpy(half, uuid, sizeof(half));
	key = KEY(le64_get(half[0]), type, le64_get(half[1]));
	ret = cursor_find(&t->c, &key, err);
	if (ret)
		return ret < 0 ? ret : 0;
	size = t->c.item.size;
	bytes = malloc(size + 1);
	if (!bytes)
		return err_nomem(err);
	for (uint32_t i = 0; i + sizeof(mine) <= size; i += (uint32_t)sizeof(mine)) {
		if (!memcmp(t->c.item.data + i, &mine, sizeof(mine)))
			continue;
		memcpy(bytes + kept, t->c.item.data + i, sizeof(mine));
		kept += (uint32_t)sizeof(mine);
	}
	if (!kept)
		ret = edit_delete(t, &key, err);
	else if (kept != size)
		ret = edit_replace(t, &key, bytes, kept, err);
	free(bytes);
	return ret;
}

int roots_drop_uuids(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d, struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_try_tree(txn->overlay, OID_UUID_TREE, &t, err);

	if (ret)
		return ret < 0 ? ret : 0;
	ret = drop_uuid(t, KEY_UUID_SUBVOL, d->uuid, id, err);
	return ret ? ret : drop_uuid(t, KEY_UUID_RECEIVED_SUBVOL, d->received_uuid, id, err);
}

int roots_drop_received(struct btrkit_txn *txn, uint64_t id, const struct disk_root_item *d, struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_try_tree(txn->overlay, OID_UUID_TREE, &t, err);

	if (ret)
		return ret < 0 ? ret : 0;
	return drop_uuid(t, KEY_UUID_RECEIVED_SUBVOL, d->received_uuid, id, err);
}
