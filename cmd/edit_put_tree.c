// SPDX-License-Identifier: LGPL-2.1-or-later
/* Local directories with what is in them, and what local files have besides contents. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "edit.h"

#define OPEN_DIRECTORIES 32	/* at once; deeper ones are read in pieces */

/* @buf: has room for any value */
static int copy_attribute(struct edit *e, const char *local, bool link, const char *name, void *buf, uint64_t root,
			  uint64_t inode, struct btrkit_error *err)
{
	const ssize_t size = (link ? lgetxattr : getxattr)(local, name, buf, XATTR_SIZE_MAX);

	if (size < 0)
		return edit_fail(err, errno, name);
	return btrkit_txn_xattr_set(e->txn, root, inode, name, buf, (size_t)size, 0, err);
}

/* Whether it is among names that a zero byte each ends. */
static bool is_listed(const char *names, ssize_t len, const char *name)
{
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (!strcmp(names + at, name))
			return true;
	return false;
}

/* What the file has by a default ACL of its directory, and the local one has not, would let in whom that does not. */
static int drop_acls(struct edit *e, const char *names, ssize_t len, uint64_t root, uint64_t inode,
		     struct btrkit_error *err)
{
	static const char *const acls[] = { "system.posix_acl_access", "system.posix_acl_default" };
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(acls) / sizeof(acls[0]); i++)
		if (!is_listed(names, len, acls[i]))
			ret = btrkit_txn_xattr_remove(e->txn, root, inode, acls[i], err);
	return ret;
}

/* @link: it is one itself, and is not followed */
static int copy_attributes(struct edit *e, const char *local, bool link, uint64_t root, uint64_t inode,
			   struct btrkit_error *err)
{
	char *names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX);
	ssize_t len;
	int ret = 0;

	if (!names)
		return edit_fail(err, ENOMEM, local);
	len = (link ? llistxattr : listxattr)(local, names, XATTR_LIST_MAX);
	if (len < 0 && errno != ENOTSUP)
		ret = edit_fail(err, errno, local);
	if (!ret && !link)
		ret = drop_acls(e, names, len, root, inode, err);
	for (ssize_t at = 0; !ret && at < len; at += (ssize_t)strlen(names + at) + 1)
		ret = copy_attribute(e, local, link, names + at, names + XATTR_LIST_MAX, root, inode, err);
	free(names);
	return ret;
}

int edit_preserve(struct edit *e, const char *local, const struct stat *st, uint64_t root, uint64_t inode,
		  struct btrkit_error *err)
{
	/* Its directory may have given it another group. This takes capabilities away, and so comes first. */
	const struct btrkit_attr owner = { .mask = BTRKIT_ATTR_UID | BTRKIT_ATTR_GID,
					   .uid = st->st_uid,
					   .gid = st->st_gid };
	struct btrkit_attr attr = {
		.mask = BTRKIT_ATTR_ATIME | BTRKIT_ATTR_MTIME,
		.mode = st->st_mode & 07777,
		.atime = { st->st_atim.tv_sec, (uint32_t)st->st_atim.tv_nsec },
		.mtime = { st->st_mtim.tv_sec, (uint32_t)st->st_mtim.tv_nsec },
	};
	int ret = btrkit_txn_set_attr(e->txn, root, inode, &owner, err);

	if (!ret)
		ret = copy_attributes(e, local, S_ISLNK(st->st_mode), root, inode, err);
	/* Whatever a default ACL has made of it. */
	if (!S_ISLNK(st->st_mode))
		attr.mask |= BTRKIT_ATTR_MODE;
	return ret ? ret : btrkit_txn_set_attr(e->txn, root, inode, &attr, err);
}

/* nftw() has no context for its functions. */
static struct putting {
	struct edit *e;
	const char *path;	/* what the directory becomes */
	size_t local_len;	/* of its name; what is below goes on with a slash */
	unsigned flags;
	struct edit_link *links;
	struct btrkit_error *err;
} put;

static char *target_of(const char *local)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s", put.path, local + put.local_len) < 0)
		edit_fail(put.err, ENOMEM, local);
	return path;
}

static int read_link(const char *local, char target[PATH_MAX])
{
	const ssize_t len = readlink(local, target, PATH_MAX);

	if (len < 0 || len == PATH_MAX)
		return edit_fail(put.err, len < 0 ? errno : ENAMETOOLONG, local);
	target[len] = '\0';
	return 0;
}

/* @return 0; 1: a directory that is there stays; <0 */
static int make_room(const char *path, const struct stat *st)
{
	struct btrkit_found f;
	int ret;

	if (!(put.flags & EDIT_PUT_FORCE))
		return 0;
	ret = edit_find(put.e, path, &f, put.err);
	if (ret || (S_ISDIR(st->st_mode) && f.type == DT_DIR))
		return ret == -ENOENT ? 0 : ret ? ret : 1;
	return edit_unlink(put.e, path, put.err);
}

/* What is neither a directory nor a regular file. */
static int put_other(const char *local, const char *path, const struct stat *st, struct btrkit_found *made)
{
	struct btrkit_new_inode what = BTRKIT_NEW_INODE_INIT;
	char target[PATH_MAX];
	int ret = make_room(path, st);

	if (ret)
		return ret;
	what.mode = st->st_mode;
	what.uid = st->st_uid;
	what.gid = st->st_gid;
	if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode))
		what.rdev = st->st_rdev;
	if (S_ISLNK(st->st_mode)) {
		ret = read_link(local, target);
		what.target = target;
	}
	if (!ret)
		ret = edit_create(put.e, path, &what, &made->root, &made->inode, put.err);
	if (!ret && put.flags & EDIT_PUT_PRESERVE)
		ret = edit_preserve(put.e, local, st, made->root, made->inode, put.err);
	return ret;
}

static int put_dir(const char *path, const struct stat *st)
{
	const struct btrkit_new_inode what = { .mode = st->st_mode, .uid = st->st_uid, .gid = st->st_gid };
	const int ret = make_room(path, st);

	if (ret)
		return ret < 0 ? ret : 0;
	return edit_create(put.e, path, &what, NULL, NULL, put.err);
}

/* A further name of what was put. @return 0; 1: it cannot be one, and is to be another file; <0 */
static int put_link(const char *path, const struct stat *st, const struct btrkit_found *there)
{
	struct edit_spot s;
	int ret = make_room(path, st);

	if (!ret)
		ret = edit_spot(put.e, path, &s, put.err);
	if (!ret)
		ret = btrkit_txn_link(put.e->txn, there->root, there->inode, &s.at, put.err);
	/* Where the path leads into another subvolume, or the file has all the names that it can have. */
	if (ret == -EXDEV || ret == -EMLINK)
		return 1;
	if (!ret)
		edit_links_end(&put.links, st);
	return ret;
}

static int put_file(const char *local, const char *path, const struct stat *st)
{
	const struct btrkit_found *there = edit_links_find(put.links, st);
	struct btrkit_found made = { 0 };
	int ret = there ? put_link(path, st, there) : 1;

	if (ret != 1)
		return ret;
	ret = S_ISREG(st->st_mode) ? edit_put_file(put.e, local, path, put.flags, &made, put.err) :
				     put_other(local, path, st, &made);
	return ret ? ret : edit_links_add(&put.links, st, &made, put.err);
}

static int put_one(const char *local, const struct stat *st, int type, struct FTW *ftw)
{
	char *path;
	int ret;

	(void)ftw;
	if (type == FTW_DNR || type == FTW_NS)
		return edit_fail(put.err, EACCES, local);
	path = target_of(local);
	if (!path)
		return -ENOMEM;
	ret = S_ISDIR(st->st_mode) ? put_dir(path, st) : put_file(local, path, st);
	free(path);
	/* That something is not there yet may be no failure. */
	if (!ret)
		*put.err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret;
}

/* When nothing is put into it any more. */
static int preserve_dir(const char *local, const struct stat *st, int type, struct FTW *ftw)
{
	struct btrkit_found f;
	char *path;
	int ret;

	(void)ftw;
	if (type != FTW_DP)
		return 0;
	path = target_of(local);
	if (!path)
		return -ENOMEM;
	ret = edit_find(put.e, path, &f, put.err);
	if (!ret)
		ret = edit_preserve(put.e, local, st, f.root, f.inode, put.err);
	free(path);
	return ret;
}

/* Whether slashes follow the first @len bytes, and these name a link. */
static bool leads_on(const char *local, size_t len)
{
	char target[PATH_MAX], *name = local[len] == '/' ? strndup(local, len) : NULL;
	const bool ret = name && readlink(name, target, sizeof(target)) >= 0;

	free(name);
	return ret;
}

int edit_put_tree(struct edit *e, const char *local, const char *path, unsigned flags, struct btrkit_error *err)
{
	size_t len = strlen(local);
	char *top = NULL;
	int ret;

	while (len > 1 && local[len - 1] == '/')
		len--;
	/* nftw() drops slashes. Behind a link they mean the directory that it leads to. */
	if (asprintf(&top, "%.*s%s", (int)len, local, leads_on(local, len) ? "/." : "") < 0)
		return edit_fail(err, ENOMEM, local);
	len = strlen(top);
	put = (struct putting){ e, path, strcmp(top, "/") ? len : 0, flags, NULL, err };
	*err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = nftw(top, put_one, OPEN_DIRECTORIES, FTW_PHYS);
	if (!ret && flags & EDIT_PUT_PRESERVE)
		ret = nftw(top, preserve_dir, OPEN_DIRECTORIES, FTW_PHYS | FTW_DEPTH);
	if (ret && !err->err)
		ret = edit_fail(err, errno, local);
	edit_links_free(&put.links);
	free(top);
	return ret;
}
