// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets owner, attributes, mode and times of extracted files, in an order in which no step undoes another. */
#include "lib/extract/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL_ACCESS "system.posix_acl_access"

/* Namespaces of attributes. */
static const char *const kinds[] = { "user.", "system.", "security.", "trusted.", "btrfs." };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static size_t kind_of(const char *name)
{
	size_t k = 0;

	while (k < KINDS && strncmp(name, kinds[k], strlen(kinds[k])) != 0)
		k++;
	return k;
}

static bool is_wanted(const struct extract *x, size_t kind)
{
	if (kind < KINDS && (kinds[kind][0] == 't' || !strcmp(kinds[kind], "security.")))
		return x->opts->flags & BTRKIT_EXTRACT_OWNERS;
	return true;
}

/* Sets an attribute of @fd, or, if @path is not NULL, of @path. */
static int set_xattr(struct extract *x, const struct extract_item *item, const struct extract_xattr *a, int fd,
		     const char *path)
{
	struct directory *d = x->to;
	const size_t kind = kind_of(a->name);
	int ret;

	if (!is_wanted(x, kind))
		return 0;
	if (strlen(a->name) != a->name_len)
		return extract_unmade(x, item->path, EINVAL, "invalid attribute name");
	ret = path ? lsetxattr(path, a->name, a->value, a->value_len, 0) :
		     fsetxattr(fd, a->name, a->value, a->value_len, 0);
	if (!ret)
		return 0;
	/* Properties of btrfs, which other filesystems do not support. */
	if (kind < KINDS && kinds[kind][0] == 'b')
		return 0;
	/* Report only once that a namespace is not supported. */
	if (errno == EOPNOTSUPP) {
		if (d->refused & (1u << kind))
			return 0;
		d->refused |= 1u << kind;
	}
	return extract_unmade(x, item->path, errno, "cannot set attribute %.60s", a->name);
}

static int set_xattrs(struct extract *x, const struct extract_item *item, int fd, const char *path)
{
	int ret = 0;

	for (size_t i = 0; i < item->num_xattrs && !ret; i++)
		ret = set_xattr(x, item, &item->xattrs[i], fd, path);
	return ret;
}

#define SET_ID ((mode_t)(S_ISUID | S_ISGID))

/*
 * Returns the mode to set, for a file with the status @st. Without the original owner it lacks the setuid bit, and
 * without the group the setgid bit, so that the file does not run with the rights of somebody else. What a file has is
 * looked up, because setting its owner may have failed, and its group may be that of the directory. @st: NULL: unknown
 */
static mode_t mode_of(const struct extract_item *item, const struct stat *st)
{
	mode_t mode = item->i.mode & 07777;

	if (!st || item->i.uid != st->st_uid)
		mode &= ~(mode_t)S_ISUID;
	if ((!st || item->i.gid != st->st_gid) && !S_ISDIR(item->i.mode))
		mode &= ~(mode_t)S_ISGID;
	return mode;
}

/*
 * Removes the ACL that a file inherited when it was created, or that an existing directory has: the mode of the item,
 * which is set later, would grant it rights. The mode is restricted first, since without the ACL its bits for the group
 * mean another group.
 */
static void drop_acl(int fd)
{
	if (fgetxattr(fd, ACL_ACCESS, NULL, 0) <= 0)
		return;
	(void)fchmod(fd, 0700);
	(void)fremovexattr(fd, ACL_ACCESS);
}

/*
 * Whether what is created may have inherited an ACL. Directories that are walked pass none on, since those that they
 * have are removed first.
 */
static bool may_inherit(const struct extract *x, const struct extract_item *item)
{
	return S_ISDIR(item->i.mode) || !x->num_frames;
}

static void times_of(const struct extract_item *item, struct timespec times[2])
{
	times[0] = (struct timespec){ .tv_sec = (time_t)item->i.atime.sec, .tv_nsec = item->i.atime.nsec };
	times[1] = (struct timespec){ .tv_sec = (time_t)item->i.mtime.sec, .tv_nsec = item->i.mtime.nsec };
}

int attributes_set_fd(struct extract *x, const struct extract_item *item, int fd)
{
	struct timespec times[2];
	struct stat st;
	int ret = 0;

	times_of(item, times);
	if (may_inherit(x, item))
		drop_acl(fd);
	if ((x->opts->flags & BTRKIT_EXTRACT_OWNERS) && fchown(fd, item->i.uid, item->i.gid))
		ret = extract_unmade(x, item->path, errno, "cannot change owner");
	if (!ret)
		ret = set_xattrs(x, item, fd, NULL);
	if (!ret && fchmod(fd, mode_of(item, !(item->i.mode & SET_ID) || fstat(fd, &st) ? NULL : &st)))
		ret = extract_unmade(x, item->path, errno, "cannot change mode");
	if (!ret && futimens(fd, times))
		ret = extract_unmade(x, item->path, errno, "cannot set times");
	return ret;
}

int attributes_set_at(struct extract *x, const struct extract_item *item, int dir)
{
	struct timespec times[2];
	char path[300];
	struct stat st;
	int ret = 0;

	times_of(item, times);
	/* lsetxattr() has no variant relative to a directory; this link in /proc leads to the open directory. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, item->name);
	/* Created with mode 0600, what it inherited grants nothing yet. */
	if (may_inherit(x, item) && !S_ISLNK(item->i.mode))
		(void)lremovexattr(path, ACL_ACCESS);
	if ((x->opts->flags & BTRKIT_EXTRACT_OWNERS) &&
	    fchownat(dir, item->name, item->i.uid, item->i.gid, AT_SYMLINK_NOFOLLOW))
		ret = extract_unmade(x, item->path, errno, "cannot change owner");
	if (!ret)
		ret = set_xattrs(x, item, -1, path);
	if (!ret && !S_ISLNK(item->i.mode) &&
	    fchmodat(dir, item->name,
		     mode_of(item, fstatat(dir, item->name, &st, AT_SYMLINK_NOFOLLOW) ? NULL : &st),
		     AT_SYMLINK_NOFOLLOW))
		ret = extract_unmade(x, item->path, errno, "cannot change mode");
	if (!ret && utimensat(dir, item->name, times, AT_SYMLINK_NOFOLLOW))
		ret = extract_unmade(x, item->path, errno, "cannot set times");
	return ret;
}
