// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/format/items/files/dir.h"
#include "lib/fs/file.h"
#include "lib/fs/subvolume.h"
#include "lib/tree/cursor.h"

/*
 * Finds the entry @name of directory @dir, whose DIR_ITEM cannot be read, by the DIR_INDEX items.
 * @return 0; 1: there is none that can be read; -ENOMEM
 */
static int find_by_index(struct cursor *c, uint64_t dir, const char *name, size_t len, struct dir_entry *ret,
			 struct btrkit_error *err)
{
	struct btrkit_key at = KEY(dir, KEY_DIR_INDEX, 0);
	int r = cursor_next_around(c, &at, true, NULL, NULL, err);

	while (!r && c->item.key.objectid == dir && c->item.key.type == KEY_DIR_INDEX) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct dir_iter it = dir_first(&c->item);

		if (!dir_next(&it, ret, &what) && ret->name_len == len && !memcmp(ret->name, name, len))
			return 0;
		r = cursor_next_around(c, &at, false, NULL, NULL, err);
	}
	return r < 0 ? r : 1;
}

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

	ret = subvolume_lies_at_either(fs, id, at->root.id, at->inode, name, len, err);
	if (ret)
		return ret;
	at->inode = OID_FIRST_FREE;
	return fs_find_root(fs, id, &at->root, NULL, err);
}

/* The entry is a placeholder in a snapshot for a nested subvolume, which snapshots do not include. */
#define STEP_EMPTY 2

/*
 * Moves from @at to its child @name. *type: FT_*, as its entry says. @around: if the DIR_ITEM cannot be read, go by the
 * DIR_INDEX items. @return 0; 1: there is none; STEP_EMPTY; <0
 */
static int step(struct btrkit_fs *fs, struct inode_place *at, const char *name, size_t len, bool around, uint8_t *type,
		struct btrkit_error *err)
{
	struct dir_entry entry;
	struct cursor c;
	int ret;

	if (len > NAME_LEN_MAX)
		return err_system(err, ENAMETOOLONG, "a name of %zu bytes", len);
	cursor_init(&c, fs, &at->root);
	ret = find_entry(&c, at->inode, name, len, &entry, err);
	if (around && ret < 0 && ret != -ENOMEM) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		const int r = find_by_index(&c, at->inode, name, len, &entry, &what);

		if (r <= 0)
			ret = err_pass(err, &what, r);
	}
	cursor_release(&c);
	if (ret)
		return ret;
	switch (entry.location.type) {
	case KEY_INODE_ITEM:
		at->inode = entry.location.objectid;
		*type = entry.type;
		return 0;
	case KEY_ROOT_ITEM:
		*type = FT_DIR;
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
	uint8_t type;
	const int ret = step(fs, at, name, len, false, &type, err);

	return ret == STEP_EMPTY ? 1 : ret;
}

/* Linux follows so many symbolic links in a path, and no more. */
#define LINKS_MAX 40u

/* A path that is being followed. */
struct walk {
	struct btrkit_fs *fs;
	const char *whole;	   /* as it was given, for messages */
	const char *path;	   /* what remains of it */
	char *text;		   /* the last link and what followed it, which @path points into; or NULL */
	struct inode_place *above; /* the root directory, and each inode below it down to the current one */
	size_t n, room;
	unsigned links;		   /* that were followed */
	bool last;		   /* follow the last name, too */
};

static int push(struct walk *w, const struct inode_place *at, struct btrkit_error *err)
{
	if (w->n == w->room) {
		const size_t room = w->room ? 2 * w->room : 16;
		struct inode_place *more = reallocarray(w->above, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		w->above = more;
		w->room = room;
	}
	w->above[w->n++] = *at;
	return 0;
}

static int read_link(struct btrkit_fs *fs, const struct inode_place *link, char **ret, size_t *len,
		     struct btrkit_error *err)
{
	struct btrkit_inode i;
	char *target;
	int r = btrkit_inode_get(fs, link->root.id, link->inode, &i, err);

	if (!r)
		r = file_link_target(fs, &i, &target, len, err);
	if (r)
		return r;
	if (S_ISLNK(i.mode) && *len && strlen(target) == *len) {
		*ret = target;
		return 0;
	}
	free(target);
	return err_corrupt(err, NULL, "symbolic link has an invalid target");
}

/* Continues at the target of @link, whose name is the next @len bytes of the path. */
static int follow(struct walk *w, const struct inode_place *link, size_t len, struct btrkit_error *err)
{
	const char *rest = w->path + len;
	char *target, *text;
	size_t n;
	int r;

	if (w->links++ == LINKS_MAX)
		return err_system(err, ELOOP, "%s", w->whole);
	r = read_link(w->fs, link, &target, &n, err);
	if (r)
		return r;
	text = realloc(target, n + strlen(rest) + 1);
	if (!text) {
		free(target);
		return err_nomem(err);
	}
	strcpy(text + n, rest);
	free(w->text);
	w->path = w->text = text;
	/* Where paths start is the root directory for links, too, so none leads elsewhere. */
	if (*text == '/')
		w->n = 1;
	return 0;
}

/* Whether the path continues upwards, behind any slashes and dots. */
static bool goes_up(const char *rest)
{
	for (;;) {
		const size_t len = strcspn(rest, "/");

		if (len > 1 || (len && *rest != '.'))
			return len == 2 && !memcmp(rest, "..", 2);
		if (!rest[len])
			return false;
		rest += len + 1;
	}
}

/* Handles the next name of the path, which has @len bytes. */
static int advance(struct walk *w, size_t len, struct btrkit_error *err)
{
	struct inode_place at = w->above[w->n - 1];
	const char *name = w->path;
	uint8_t type;
	int r;

	/* The root directory is its own parent. */
	if (len == 2 && !memcmp(name, "..", 2)) {
		w->n -= w->n > 1;
		w->path += len;
		return 0;
	}
	r = step(w->fs, &at, name, len, true, &type, err);
	if (r < 0)
		return r;
	if (r == STEP_EMPTY && goes_up(name + len)) {
		/* Nothing is looked up in the empty directory. */
		w->path += len;
		return push(w, &at, err);
	}
	if (r == STEP_EMPTY)
		return err_set(err, BTRKIT_NOT_FOUND,
			       "%.*s is an empty placeholder for a subvolume that the snapshot does not include: %s",
			       (int)len, name, w->whole);
	if (r)
		return err_set(err, BTRKIT_NOT_FOUND, "no such file or directory: %s", w->whole);
	if (type == FT_SYMLINK && !w->fs->no_links && (w->last || name[len]))
		return follow(w, &at, len, err);
	/* This includes a trailing slash. */
	if (name[len] && type != FT_DIR)
		return err_system(err, ENOTDIR, "%s", w->whole);
	w->path += len;
	return push(w, &at, err);
}

int path_resolve(struct btrkit_fs *fs, const struct tree_root *root, const char *path, bool last,
		 struct inode_place *ret, struct btrkit_error *err)
{
	struct walk w = { .fs = fs, .whole = path, .path = path, .last = last };
	int r = push(&w, &(struct inode_place){ *root, OID_FIRST_FREE }, err);

	while (!r && *w.path) {
		const size_t len = strcspn(w.path, "/");

		if (!len || (len == 1 && *w.path == '.'))
			w.path += len ? len : 1;
		else
			r = advance(&w, len, err);
	}
	if (!r)
		*ret = w.above[w.n - 1];
	free(w.above);
	free(w.text);
	return r;
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
		r = path_resolve(fs, &top.root, name, true, &place, err);
	if (r)
		return r;
	if (place.inode != OID_FIRST_FREE)
		return err_set(err, BTRKIT_INVALID, "not a subvolume: %s", name);
	*ret = place.root.id;
	return 0;
}
