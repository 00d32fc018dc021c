// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/subvolume.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"

int subvolume_try(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err)
{
	struct subvolume s;
	int r = oid_is_file_tree(id) ? fs_try_root(fs, id, &s.root, &s.item, err) : 1;

	if (!r && !s.item.refs)
		r = 1;
	if (!r)
		*ret = s;
	return r;
}

int subvolume_get(struct btrkit_fs *fs, uint64_t id, struct subvolume *ret, struct btrkit_error *err)
{
	const int r = subvolume_try(fs, id, ret, err);

	return r == 1 ? err_set(err, BTRKIT_NOT_FOUND, "no subvolume %" PRIu64, id) : r;
}

int subvolume_next_around(struct btrkit_fs *fs, uint64_t after, struct subvolume *ret, cursor_lost_fn lost, void *ctx,
			  struct btrkit_error *err)
{
	struct btrkit_key key = KEY(after < OID_FS_TREE ? OID_FS_TREE : after + 1, KEY_ROOT_ITEM, 0);
	bool first = true;
	struct cursor c;
	int r;

	if (after >= OID_LAST_FREE)
		return 1;
	if (after >= OID_FS_TREE && key.objectid < OID_FIRST_FREE)
		key.objectid = OID_FIRST_FREE;
	cursor_init(&c, fs, &fs->root_tree);
	while (!(r = cursor_next_around(&c, &key, first, lost, ctx, err))) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct root_item item;

		first = false;
		if (c.item.key.objectid > OID_LAST_FREE) {
			r = 1;
			break;
		}
		if (c.item.key.type != KEY_ROOT_ITEM || !oid_is_file_tree(c.item.key.objectid))
			continue;
		r = cursor_blame(&c, root_item_decode(&fs->items, &c.item, &item, &what), &what);
		if (r) {
			r = lost(ctx, r, &what);
			if (r)
				break;
		} else if (item.refs) {
			ret->root = fs_root_of(fs, &c.item.key, &item);
			ret->item = item;
			break;
		}
	}
	cursor_release(&c);
	return r;
}

/* A cursor_lost_fn that ends the search. */
static int end(void *ctx, int ret, const struct btrkit_error *what)
{
	return err_pass(ctx, what, ret);
}

int subvolume_next(struct btrkit_fs *fs, uint64_t after, struct subvolume *ret, struct btrkit_error *err)
{
	return subvolume_next_around(fs, after, ret, end, err, err);
}

int subvolume_parent(struct cursor *c, uint64_t id, uint64_t *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(id, KEY_ROOT_BACKREF, 0);
	int r = cursor_seek(c, &key, err);

	if (r < 0)
		return r;
	*ret = !r && c->item.key.objectid == id && c->item.key.type == KEY_ROOT_BACKREF ? c->item.key.offset : 0;
	return 0;
}

/* Moves to a reference to subvolume @id that a parent has, wherever that is. @return 0; 1: none was found; -ENOMEM */
static int search_ref(struct cursor *c, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(OID_FS_TREE, KEY_ROOT_REF, 0);
	bool first = true;
	int r;

	while (!(r = cursor_next_around(c, &at, first, NULL, NULL, err))) {
		first = false;
		if (at.objectid > OID_LAST_FREE)
			return 1;
		if (at.type == KEY_ROOT_REF && at.offset == id)
			return 0;
	}
	return r;
}

int subvolume_parent_either(struct cursor *c, uint64_t id, uint64_t *ret, struct btrkit_error *err)
{
	int r = subvolume_parent(c, id, ret, err), other;

	if (r >= 0 || r == -ENOMEM)
		return r;
	other = search_ref(c, id, err);
	if (other)
		return other < 0 ? other : r;
	if (err)
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	*ret = c->item.key.objectid;
	return 0;
}

/* Checks whether the reference with that key says so. @return 0: it does; 1: it does not; <0 */
static int ref_says(struct btrkit_fs *fs, const struct btrkit_key *key, uint64_t dir, const void *name, size_t len,
		    struct btrkit_error *err)
{
	struct root_ref ref;
	struct cursor c;
	int r;

	cursor_init(&c, fs, &fs->root_tree);
	r = cursor_find(&c, key, err);
	if (!r) {
		r = cursor_blame(&c, root_ref_decode(&c.item, &ref, err), err);
		if (!r)
			r = ref.dirid != dir || ref.name_len != len || memcmp(ref.name, name, len) != 0;
	}
	cursor_release(&c);
	return r;
}

int subvolume_lies_at(struct btrkit_fs *fs, uint64_t id, uint64_t parent, uint64_t dir, const void *name, size_t len,
		      struct btrkit_error *err)
{
	return ref_says(fs, &KEY(parent, KEY_ROOT_REF, id), dir, name, len, err);
}

int subvolume_lies_at_either(struct btrkit_fs *fs, uint64_t id, uint64_t parent, uint64_t dir, const void *name,
			     size_t len, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int r = subvolume_lies_at(fs, id, parent, dir, name, len, &what);

	/* That the back reference is missing or another one says nothing about the reference. */
	if (r < 0 && r != -ENOMEM && !ref_says(fs, &KEY(id, KEY_ROOT_BACKREF, parent), dir, name, len, NULL))
		return 0;
	return r < 0 ? err_pass(err, &what, r) : r;
}

int btrkit_subvolume_next(struct btrkit_fs *fs, uint64_t after, struct btrkit_subvolume *ret, struct btrkit_error *err)
{
	struct subvolume s;
	int r;

	r = subvolume_next(fs, after, &s, err);
	if (r)
		return r;
	*ret = (struct btrkit_subvolume){
		.id = s.root.id,
		.generation = s.root.generation,
		.last_snapshot = s.item.last_snapshot,
		.root_bytenr = s.root.bytenr,
		.read_only = s.item.flags & ROOT_SUBVOL_RDONLY,
	};
	memcpy(ret->uuid, s.item.uuid, sizeof(ret->uuid));
	memcpy(ret->parent_uuid, s.item.parent_uuid, sizeof(ret->parent_uuid));
	memcpy(ret->received_uuid, s.item.received_uuid, sizeof(ret->received_uuid));
	return 0;
}
