// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copying local directories recursively. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/edit/edit.h"

struct putting {
	struct edit *e;
	const char *path;	/* the copy of the directory */
	unsigned flags;
	struct edit_link *links;
};

static int read_link(const struct edit_local *local, char target[PATH_MAX], struct btrkit_error *err)
{
	const ssize_t len = readlinkat(local->dir, local->name, target, PATH_MAX);

	if (len < 0 && (errno == EINVAL || errno == ENOENT))
		return edit_changed(err, local->path);
	if (len < 0 || len == PATH_MAX)
		return edit_fail(err, len < 0 ? errno : ENAMETOOLONG, local->path);
	target[len] = '\0';
	return 0;
}

/* Removes an existing file that is in the way. @return 0; 1: an existing directory is kept; <0 */
static int make_room(const struct putting *p, const char *path, const struct stat *st, struct btrkit_error *err)
{
	struct btrkit_found f;
	int ret;

	if (!(p->flags & EDIT_PUT_FORCE))
		return 0;
	ret = edit_find(p->e, path, &f, err);
	if (ret || (S_ISDIR(st->st_mode) && f.type == DT_DIR))
		return ret == -ENOENT ? 0 : ret ? ret : 1;
	return edit_unlink(p->e, path, err);
}

/* Copies what is neither a directory nor a regular file. */
static int put_other(const struct putting *p, const struct edit_local *local, const char *path,
		     struct btrkit_found *made, struct btrkit_error *err)
{
	const struct stat *st = &local->st;
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	char target[PATH_MAX];
	int ret = make_room(p, path, st, err);

	if (ret)
		return ret;
	what.mode = st->st_mode;
	what.uid = st->st_uid;
	what.gid = st->st_gid;
	if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode))
		what.rdev = st->st_rdev;
	if (S_ISLNK(st->st_mode)) {
		ret = read_link(local, target, err);
		what.target = target;
	}
	if (!ret)
		ret = edit_create(p->e, path, &what, &made->root, &made->inode, err);
	if (!ret && p->flags & EDIT_PUT_PRESERVE)
		ret = edit_preserve(p->e, local, made->root, made->inode, err);
	return ret;
}

static int put_dir(const struct putting *p, const char *path, const struct stat *st, struct btrkit_error *err)
{
	const struct btrkit_new_inode what = { .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid };
	const int ret = make_room(p, path, st, err);

	if (ret)
		return ret < 0 ? ret : 0;
	return edit_create(p->e, path, &what, NULL, NULL, err);
}

/* Adds another name for a file that was already copied. @return 0; 1: not possible, copy it again; <0 */
static int put_link(struct putting *p, const char *path, const struct stat *st, const struct btrkit_found *there,
		    struct btrkit_error *err)
{
	struct edit_spot s;
	int ret = make_room(p, path, st, err);

	if (!ret)
		ret = edit_spot(p->e, path, &s, err);
	if (!ret)
		ret = btrkit_txn_link(p->e->txn, there->root, there->inode, &s.at, err);
	/* The path is in another subvolume, or the file has the maximum number of links. */
	if (ret == -EXDEV || ret == -EMLINK)
		return 1;
	if (!ret)
		edit_links_end(&p->links, st);
	return ret;
}

static int put_file(struct putting *p, const struct edit_local *local, const char *path, struct btrkit_error *err)
{
	const struct stat *st = &local->st;
	const struct btrkit_found *there = edit_links_find(p->links, st);
	struct btrkit_found made = { 0 };
	int ret = there ? put_link(p, path, st, there, err) : 1;

	if (ret != 1)
		return ret;
	ret = S_ISREG(st->st_mode) ? edit_put_local(p->e, local, path, p->flags, &made, err) :
				     put_other(p, local, path, &made, err);
	return ret ? ret : edit_links_add(&p->links, st, &made, err);
}

static char *target_of(const struct putting *p, const char *below, struct btrkit_error *err)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s", p->path, below) >= 0)
		return path;
	edit_fail(err, ENOMEM, p->path);
	return NULL;
}

static int put_one(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err)
{
	struct putting *p = ctx;
	char *path = target_of(p, below, err);
	int ret;

	if (!path)
		return -ENOMEM;
	ret = S_ISDIR(local->st.st_mode) ? put_dir(p, path, &local->st, err) : put_file(p, local, path, err);
	free(path);
	/* An error for a missing file may have been set without a failure. */
	if (!ret)
		*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret;
}

/* Called when everything in the directory has been copied. */
static int preserve_dir(void *ctx, const struct edit_local *local, const char *below, struct btrkit_error *err)
{
	struct putting *p = ctx;
	struct btrkit_found f;
	char *path;
	int ret;

	if (!(p->flags & EDIT_PUT_PRESERVE))
		return 0;
	path = target_of(p, below, err);
	if (!path)
		return -ENOMEM;
	ret = edit_find(p->e, path, &f, err);
	if (!ret)
		ret = edit_preserve(p->e, local, f.root, f.inode, err);
	free(path);
	return ret;
}

int edit_put_tree(struct edit *e, const char *local, const char *path, unsigned flags, struct btrkit_error *err)
{
	struct putting p = { e, path, flags, NULL };
	const struct edit_visitor visitor = { &p, put_one, preserve_dir };
	int ret;

	*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	/* Without that each name would be looked up through all directories above it. */
	ret = edit_know(e, err);
	if (!ret)
		ret = edit_walk(local, &visitor, err);
	edit_forget(e);
	edit_links_free(&p.links);
	return ret;
}
