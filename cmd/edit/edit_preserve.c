// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copying attributes of local files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cmd/edit/edit.h"

/* Where to read extended attributes. */
struct place {
	int fd;			/* -1: use the path, without following the last component */
	const char *path;
	char text[NAME_MAX + 64];
};

/* No system call takes a directory and a name. Without /proc the whole path is used. */
static void find_place(const struct edit_local *local, struct place *ret)
{
	ret->fd = local->fd;
	ret->path = local->path;
	if (local->fd >= 0 || local->dir < 0)
		return;
	snprintf(ret->text, sizeof(ret->text), "/proc/self/fd/%d", local->dir);
	if (access(ret->text, F_OK))
		return;
	snprintf(ret->text, sizeof(ret->text), "/proc/self/fd/%d/%s", local->dir, local->name);
	ret->path = ret->text;
}

/* @buf: has room for any value */
static int copy_attribute(struct edit *e, const struct place *at, const char *name, void *buf, uint64_t root,
			  uint64_t inode, struct btrkit_error *err)
{
	const ssize_t size = at->fd >= 0 ? fgetxattr(at->fd, name, buf, XATTR_SIZE_MAX) :
					   lgetxattr(at->path, name, buf, XATTR_SIZE_MAX);

	if (size < 0)
		return edit_fail(err, errno, name);
	return btrkit_txn_xattr_set(e->txn, root, inode, name, buf, (size_t)size, 0, err);
}

/* Whether a name is in a list of zero-terminated names. */
static bool is_listed(const char *names, ssize_t len, const char *name)
{
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
		if (!strcmp(names + at, name))
			return true;
	return false;
}

/* Removes ACLs inherited from a default ACL: the local file has none, and they could grant access that it does not. */
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

static int copy_attributes(struct edit *e, const struct edit_local *local, uint64_t root, uint64_t inode,
			   struct btrkit_error *err)
{
	char *names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX);
	struct place place;
	ssize_t len;
	int ret = 0;

	if (!names)
		return edit_fail(err, ENOMEM, local->path);
	find_place(local, &place);
	len = place.fd >= 0 ? flistxattr(place.fd, names, XATTR_LIST_MAX) :
			      llistxattr(place.path, names, XATTR_LIST_MAX);
	if (len < 0 && errno != ENOTSUP)
		ret = edit_fail(err, errno, local->path);
	if (!ret && !S_ISLNK(local->st.st_mode))
		ret = drop_acls(e, names, len, root, inode, err);
	for (ssize_t at = 0; !ret && at < len; at += (ssize_t)strlen(names + at) + 1)
		ret = copy_attribute(e, &place, names + at, names + XATTR_LIST_MAX, root, inode, err);
	free(names);
	return ret;
}

int edit_preserve(struct edit *e, const struct edit_local *local, uint64_t root, uint64_t inode,
		  struct btrkit_error *err)
{
	const struct stat *st = &local->st;
	/* The directory may have set another group. Do this first, since it removes capabilities. */
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
		ret = copy_attributes(e, local, root, inode, err);
	/* A default ACL may have changed the mode. */
	if (!S_ISLNK(st->st_mode))
		attr.mask |= BTRKIT_ATTR_MODE;
	return ret ? ret : btrkit_txn_set_attr(e->txn, root, inode, &attr, err);
}
