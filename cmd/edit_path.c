// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookup of paths, including uncommitted changes. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "edit.h"

#define EMPTY "empty path (the root directory is /)"

/* Skips slashes, and names that are a dot. */
static void skip(const char **path)
{
	for (;;) {
		*path += strspn(*path, "/");
		if (**path != '.' || ((*path)[1] && (*path)[1] != '/'))
			return;
		++*path;
	}
}

/* Gets the next name; @path then points to the one after it, or to the end. */
static const char *next_name(const char **path, size_t *len)
{
	const char *name;

	skip(path);
	name = *path;
	*len = strcspn(name, "/");
	*path += *len;
	skip(path);
	return name;
}

static int walk(struct edit *e, const char *path, struct edit_spot *ret, struct btrkit_error *err)
{
	uint64_t root = e->root, dir = BTRKIT_TOP_INODE;
	const char *whole = path;

	e->path = path;
	if (!*path)
		return edit_fail(err, EINVAL, EMPTY);
	for (;;) {
		struct btrkit_found found;
		size_t len;
		const char *name = next_name(&path, &len);
		int r;

		if (!*path) {
			*ret = (struct edit_spot){ root, { root, dir, name, len }, len && name[len] };
			return 0;
		}
		r = btrkit_txn_lookup(e->txn, root, dir, name, len, &found, err);
		/* Checked before another path is looked up, as in Linux. */
		if (!r && found.type != DT_DIR)
			r = edit_fail(err, ENOTDIR, whole);
		if (r)
			return r;
		root = found.root;
		dir = found.inode;
	}
}

int edit_spot(struct edit *e, const char *path, struct edit_spot *ret, struct btrkit_error *err)
{
	int r = walk(e, path, ret, err);

	return r ? r : edit_unlock(e, ret->root, err);
}

int edit_find(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	struct edit_spot s;
	int r = walk(e, path, &s, err);

	if (r)
		return r;
	if (!s.at.len) {
		*ret = (struct btrkit_found){ s.root, s.at.dir, DT_DIR };
		return 0;
	}
	r = btrkit_txn_lookup(e->txn, s.root, s.at.dir, s.at.name, s.at.len, ret, err);
	return r || !s.slash || ret->type == DT_DIR ? r : edit_fail(err, ENOTDIR, path);
}

int edit_spot_new(struct edit *e, const char *path, uint32_t mode, struct edit_spot *ret, struct btrkit_error *err)
{
	struct btrkit_found f;
	int r = edit_spot(e, path, ret, err);

	if (r)
		return r;
	if (!ret->at.len)
		return edit_fail(err, EEXIST, path);
	if (!ret->slash || S_ISDIR(mode))
		return 0;
	if (S_ISREG(mode))
		return edit_fail(err, EISDIR, path);
	r = btrkit_txn_lookup(e->txn, ret->root, ret->at.dir, ret->at.name, ret->at.len, &f, err);
	return r ? r : edit_fail(err, EEXIST, path);
}

int edit_target(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	int r = edit_find(e, path, ret, err);

	return r ? r : edit_unlock(e, ret->root, err);
}

int edit_target_file(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	int r = edit_target(e, path, ret, err);

	return r || ret->inode != BTRKIT_EMPTY_SUBVOLUME ? r : edit_fail(err, EISDIR, path);
}

int edit_make_dirs(struct edit *e, const char *path, bool last, struct btrkit_error *err)
{
	uint64_t root = e->root, dir = BTRKIT_TOP_INODE;

	e->path = path;
	if (!*path)
		return edit_fail(err, EINVAL, EMPTY);
	for (;;) {
		struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
		struct btrkit_found found;
		size_t len;
		const char *name = next_name(&path, &len);
		int r;

		if (!len || (!last && !*path))
			return 0;
		what.mode = 0040755;
		r = btrkit_txn_lookup(e->txn, root, dir, name, len, &found, err);
		if (r == -ENOENT) {
			found = (struct btrkit_found){ root, 0, DT_DIR };
			r = edit_unlock(e, root, err);
			if (!r)
				r = btrkit_txn_create(e->txn, root, dir, name, len, &what, &found.inode, err);
		} else if (!r && found.type != DT_DIR) {
			return edit_fail(err, *path ? ENOTDIR : EEXIST, name);
		}
		if (r)
			return r;
		root = found.root;
		dir = found.inode;
	}
}

int edit_create(struct edit *e, const char *path, const struct btrkit_new_inode *what, uint64_t *root, uint64_t *inode,
		struct btrkit_error *err)
{
	struct edit_spot s;
	int ret = edit_spot_new(e, path, what->mode, &s, err);

	if (ret)
		return ret;
	if (root)
		*root = s.root;
	return btrkit_txn_create(e->txn, s.root, s.at.dir, s.at.name, s.at.len, what, inode, err);
}

int edit_unlink(struct edit *e, const char *path, struct btrkit_error *err)
{
	struct btrkit_found f;
	struct edit_spot s;
	int ret = edit_spot(e, path, &s, err);

	if (!ret && !s.at.len)
		ret = edit_fail(err, EISDIR, path);
	if (!ret && s.slash)
		ret = edit_find(e, path, &f, err);
	return ret ? ret : btrkit_txn_unlink(e->txn, s.root, s.at.dir, s.at.name, s.at.len, BTRKIT_UNLINK_FILE, err);
}
