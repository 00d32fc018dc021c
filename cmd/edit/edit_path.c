// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookup of paths, including uncommitted changes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/edit/edit.h"

#define EMPTY "empty path (the root directory is /)"

/* Gets the next name; @path then points to the one after it, or to the end. */
static const char *next_name(const char **path, size_t *len)
{
	const char *name;

	*path += strspn(*path, "/");
	name = *path;
	*len = strcspn(name, "/");
	*path += *len;
	*path += strspn(*path, "/");
	return name;
}

/* Linux follows so many symbolic links in a path, and no more. */
#define LINKS_MAX 40u

#define WAY_LAST 1u	/* follow a symbolic link that is the last name */
#define WAY_MAKE 2u	/* make directories that are missing */

/* A path that is being resolved. The directories above it are in e->above, from the root directory on. */
struct way {
	struct edit *e;
	const char *whole, *path;	/* as it was given; what remains of it */
	const char *given;	/* what precedes this comes from symbolic links */
	char *text;		/* the last link and what followed it, which @path points into; or NULL */
	size_t n;		/* directories in e->above */
	unsigned how;
	unsigned links;		/* that were followed */
};

static int push(struct way *w, const struct btrkit_found *dir, struct btrkit_error *err)
{
	struct edit *e = w->e;

	if (w->n == e->room_above) {
		const size_t room = e->room_above ? 2 * e->room_above : 64;
		struct btrkit_found *more = reallocarray(e->above, room, sizeof(*more));

		if (!more)
			return edit_fail(err, ENOMEM, w->whole);
		e->above = more;
		e->room_above = room;
	}
	e->above[w->n++] = *dir;
	return 0;
}

/* Goes back to the first @n directories. The others are overwritten next. */
static void go_up(struct way *w, size_t n)
{
	w->n = n;
	edit_known_go_up(w->e, n);
}

/* Continues at the target of @link, which @rest follows. */
static int follow(struct way *w, const struct btrkit_found *link, const char *rest, struct btrkit_error *err)
{
	const size_t own = w->given > rest ? (size_t)(w->given - rest) : 0;
	char target[PATH_MAX], *text;
	size_t len;
	int ret;

	if (w->links++ == LINKS_MAX)
		return edit_fail(err, ELOOP, w->whole);
	ret = btrkit_txn_read(w->e->txn, link->root, link->inode, 0, target, sizeof(target), &len, err);
	if (ret)
		return ret;
	if (!len || len >= sizeof(target) || memchr(target, '\0', len))
		return edit_fail(err, EINVAL, "symbolic link has an invalid target");
	text = malloc(len + strlen(rest) + 1);
	if (!text)
		return edit_fail(err, ENOMEM, w->whole);
	memcpy(text, target, len);
	strcpy(text + len, rest);
	free(w->text);
	w->path = w->text = text;
	w->given = text + len + own;
	if (*text == '/')
		go_up(w, 1);
	return 0;
}

/* Looks up a name in the current directory. */
static int look_up(const struct way *w, const char *name, size_t len, struct btrkit_found *f, struct btrkit_error *err)
{
	const struct btrkit_found *dir = &w->e->above[w->n - 1];
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	int ret = btrkit_txn_lookup(w->e->txn, dir->root, dir->inode, name, len, f, err);

	/* What links lead to is not made. */
	if (ret != -ENOENT || !(w->how & WAY_MAKE) || name < w->given)
		return ret;
	*f = (struct btrkit_found){ dir->root, 0, DT_DIR, { 0 } };
	what.mode = S_IFDIR | 0755;
	ret = edit_unlock(w->e, dir->root, err);
	return ret ? ret : btrkit_txn_create(w->e->txn, dir->root, dir->inode, name, len, &what, &f->inode, err);
}

/* Goes through the next name of the path. @return 0; 1: it was the last; <0 */
static int pass(struct way *w, const char *name, size_t len, struct btrkit_found *f, struct btrkit_error *err)
{
	const bool at_end = !*w->path;
	int ret = look_up(w, name, len, f, err);

	if (ret)
		return ret;
	if (f->type == DT_LNK && !w->e->no_links && (w->how & WAY_LAST || name[len]))
		return follow(w, f, name + len, err);
	if (at_end && w->how & WAY_MAKE && f->type != DT_DIR)
		return edit_fail(err, EEXIST, w->whole);
	/* Checked before another path is looked up, as in Linux. */
	if (name[len] && f->type != DT_DIR)
		return edit_fail(err, ENOTDIR, w->whole);
	if (at_end)
		return 1;
	ret = push(w, f, err);
	if (!ret && name + len >= w->given)
		ret = edit_known_add(w->e, strlen(w->whole) - strlen(name + len), w->n, err);
	return ret;
}

static enum edit_last kind(const char *name, size_t len)
{
	if (!len)
		return EDIT_ROOT;
	if (len == 2)
		return memcmp(name, "..", 2) ? EDIT_NAME : EDIT_DOTDOT;
	return len == 1 && *name == '.' ? EDIT_DOT : EDIT_NAME;
}

/* The last name of the path, in the current directory. */
static struct edit_spot end_at(const struct way *w, const char *name, size_t len, enum edit_last last)
{
	const struct btrkit_found *dir = &w->e->above[w->n - 1];
	struct edit_spot s = { .root = dir->root, .last = last };

	if (last != EDIT_NAME)
		len = 0;
	/* The last name is never part of a link, but text may have been copied: point into the path. */
	if (len && w->text)
		name = w->whole + strlen(w->whole) - strlen(name);
	s.at = (struct btrkit_place){ dir->root, dir->inode, name, len };
	s.slash = len && name[len];
	return s;
}

/*
 * Resolves a path: up to its last name if @found is NULL, which *@s gets with its directory; otherwise *@found is what
 * is there.
 */
static int walk(struct way *w, struct edit_spot *s, struct btrkit_found *found, struct btrkit_error *err)
{
	size_t known = 0;
	int ret = edit_known_find(w->e, w->whole, &known, &w->n, err);

	w->path += known;
	if (!ret && !w->n)
		ret = push(w, &(struct btrkit_found){ w->e->root, BTRKIT_TOP_INODE, DT_DIR, { 0 } }, err);

	while (!ret) {
		enum edit_last last;
		size_t len;
		const char *name = next_name(&w->path, &len);

		last = kind(name, len);
		/* The root directory is its own parent. */
		if (last == EDIT_DOTDOT)
			go_up(w, w->n - (w->n > 1));
		if (last != EDIT_NAME && *w->path)
			continue;
		if (!found && !*w->path) {
			*s = end_at(w, name, len, last);
			return 0;
		}
		if (last != EDIT_NAME) {
			*found = w->e->above[w->n - 1];
			return 0;
		}
		ret = pass(w, name, len, found ? found : &(struct btrkit_found){ 0 }, err);
	}
	return ret < 0 ? ret : 0;
}

static int resolve(struct edit *e, const char *path, unsigned how, struct edit_spot *s, struct btrkit_found *found,
		   struct btrkit_error *err)
{
	struct way w = { .e = e, .whole = path, .path = path, .given = path, .how = how };
	int ret;

	e->path = path;
	ret = *path ? walk(&w, s, found, err) : edit_fail(err, EINVAL, EMPTY);
	free(w.text);
	return ret;
}

int edit_spot(struct edit *e, const char *path, struct edit_spot *ret, struct btrkit_error *err)
{
	int r = resolve(e, path, 0, ret, NULL, err);

	return r ? r : edit_unlock(e, ret->root, err);
}

int edit_find(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	return resolve(e, path, 0, NULL, ret, err);
}

int edit_find_target(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	return resolve(e, path, WAY_LAST, NULL, ret, err);
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

int edit_inode(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	int r = edit_find(e, path, ret, err);

	return r ? r : edit_unlock(e, ret->root, err);
}

int edit_target(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	int r = edit_find_target(e, path, ret, err);

	return r ? r : edit_unlock(e, ret->root, err);
}

int edit_target_file(struct edit *e, const char *path, struct btrkit_found *ret, struct btrkit_error *err)
{
	int r = edit_target(e, path, ret, err);

	return r || ret->inode != BTRKIT_EMPTY_SUBVOLUME ? r : edit_fail(err, EISDIR, path);
}

int edit_make_dirs(struct edit *e, const char *path, bool last, struct btrkit_error *err)
{
	struct btrkit_found f;
	struct edit_spot s;

	return last ? resolve(e, path, WAY_LAST | WAY_MAKE, NULL, &f, err) : resolve(e, path, WAY_MAKE, &s, NULL, err);
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
	/* Not even a link to a directory is removed by a name with a slash behind it. */
	if (!ret && s.slash)
		ret = btrkit_txn_lookup(e->txn, s.root, s.at.dir, s.at.name, s.at.len, &f, err);
	if (!ret && s.slash && f.type != DT_DIR)
		ret = edit_fail(err, ENOTDIR, path);
	return ret ? ret : btrkit_txn_unlink(e->txn, s.root, s.at.dir, s.at.name, s.at.len, BTRKIT_UNLINK_FILE, err);
}
