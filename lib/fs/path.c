// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/dir.h"
#include "lib/fs/subvolume.h"
#include "lib/tree/cursor.h"

/* Finds the entry @name of directory @dir. @return 0; 1: there is none; <0 */
static int find_entry(struct cursor *c, uint64_t dir, const char *name, size_t len, struct dir_entry *ret,
		      struct btrkit_error *err)
{
	struct btrkit_key key = KEY(dir, KEY_DIR_ITEM, dir_name_hash(name, len));
	struct dir_iter it;
	int r;

	r = cursor_find(c, &key, err);
	if (r)
		return r;
	it = dir_first(&c->item);
	while (!(r = dir_next(&it, ret, err)))
		if (ret->name_len == len && !memcmp(ret->name, name, len))
			return 0;
	return cursor_blame(c, r, err);
}

/* Moves from @at into the subvolume @id that the entry @name points to. @return 0; 1: it is not attached there; <0 */
static int step_across(struct btrkit_fs *fs, struct inode_place *at, uint64_t id, const char *name, size_t len,
		       struct btrkit_error *err)
{
	int ret;

	ret = subvolume_lies_at(fs, id, at->root.id, at->inode, name, len, err);
	if (ret)
		return ret;
	at->inode = OID_FIRST_FREE;
	return fs_find_root(fs, id, &at->root, NULL, err);
}

/* The entry is a placeholder in a snapshot for a nested subvolume, which snapshots do not include. */
#define STEP_EMPTY 2

/*
 * Moves from @at to its child @name. *is_dir: whether its entry says that it is a directory. @return 0; 1: there is
 * none; STEP_EMPTY; <0
 */
static int step(struct btrkit_fs *fs, struct inode_place *at, const char *name, size_t len, bool *is_dir,
		struct btrkit_error *err)
{
	struct dir_entry entry;
	struct cursor c;
	int ret;

	if (len > NAME_LEN_MAX)
		return err_system(err, ENAMETOOLONG, "a name of %zu bytes", len);
	cursor_init(&c, fs, &at->root);
	ret = find_entry(&c, at->inode, name, len, &entry, err);
	cursor_release(&c);
	if (ret)
		return ret;
	switch (entry.location.type) {
	case KEY_INODE_ITEM:
		at->inode = entry.location.objectid;
		*is_dir = entry.type == FT_DIR;
		return 0;
	case KEY_ROOT_ITEM:
		*is_dir = true;
		ret = step_across(fs, at, entry.location.objectid, name, len, err);
		return ret == 1 ? STEP_EMPTY : ret;
	default:
		ret = err_corrupt(err, "location", "directory entry points to an item of type %u", entry.location.type);
		err_at_tree(err, at->root.id);
		return ret;
	}
}

int path_step(struct btrkit_fs *fs, struct inode_place *at, const char *name, size_t len, struct btrkit_error *err)
{
	bool is_dir;
	const int ret = step(fs, at, name, len, &is_dir, err);

	return ret == STEP_EMPTY ? 1 : ret;
}

int path_resolve(struct btrkit_fs *fs, const struct tree_root *root, const char *path, struct inode_place *ret,
		 struct btrkit_error *err)
{
	struct inode_place at = { *root, OID_FIRST_FREE };
	const char *whole = path;

	while (*path) {
		size_t len = strcspn(path, "/");
		bool is_dir;
		int r;

		if (len && !(len == 1 && *path == '.')) {
			r = step(fs, &at, path, len, &is_dir, err);
			if (r < 0)
				return r;
			if (r == STEP_EMPTY)
				return err_set(err, BTRKIT_NOT_FOUND,
					       "%.*s is an empty placeholder for a subvolume that "
					       "the snapshot does not include: %s", (int)len, path, whole);
			if (r)
				return err_set(err, BTRKIT_NOT_FOUND, "no such file or directory: %s", whole);
			/* This includes a trailing slash. */
			if (path[len] && !is_dir)
				return err_system(err, ENOTDIR, "%s", whole);
		}
		path += len;
		path += *path == '/';
	}
	*ret = at;
	return 0;
}

int subvolume_default(struct btrkit_fs *fs, uint64_t *ret, struct btrkit_error *err)
{
	static const char name[] = "default";
	struct dir_entry entry;
	struct cursor c;
	int r;

	cursor_init(&c, fs, &fs->root_tree);
	r = find_entry(&c, OID_ROOT_TREE_DIR, name, sizeof(name) - 1, &entry, err);
	if (!r)
		*ret = entry.location.objectid;
	else if (r == 1)
		r = err_set(err, BTRKIT_NOT_FOUND, "no default subvolume");
	cursor_release(&c);
	return r;
}

int btrkit_subvolume_find(struct btrkit_fs *fs, const char *name, uint64_t *ret, struct btrkit_error *err)
{
	struct inode_place place;
	struct subvolume top;
	uint64_t id;
	char *end;
	int r;

	errno = 0;
	id = strtoull(name, &end, 10);
	if (*name >= '0' && *name <= '9' && !*end && !errno) {
		r = subvolume_try(fs, id, &top, err);
		if (r != 1) {
			if (!r)
				*ret = id;
			return r;
		}
	}
	r = subvolume_get(fs, OID_FS_TREE, &top, err);
	if (!r)
		r = path_resolve(fs, &top.root, name, &place, err);
	if (r)
		return r;
	if (place.inode != OID_FIRST_FREE)
		return err_set(err, BTRKIT_INVALID, "not a subvolume: %s", name);
	*ret = place.root.id;
	return 0;
}
