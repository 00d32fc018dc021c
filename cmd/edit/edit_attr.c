// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on attributes of inodes. */
#include <ctype.h>
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/edit/edit.h"

/* Looks up an inode that is to be changed. @itself: a symbolic link that is the last name, not what it leads to */
static int find(struct edit *e, const char *path, bool itself, struct btrkit_found *ret, struct btrkit_error *err)
{
	return itself ? edit_inode(e, path, ret, err) : edit_target(e, path, ret, err);
}

/* Applies the same change to each path. @itself: see find() */
static int set_each(struct edit *e, char **paths, size_t n, bool itself, const struct btrkit_attr *attr,
		    struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		struct btrkit_found f;

		ret = find(e, paths[i], itself, &f, err);
		if (!ret)
			ret = btrkit_txn_set_attr(e->txn, f.root, f.inode, attr, err);
	}
	return ret;
}

/* Parses a number less than @below that ends with @stop or the end. @return where it ends, NULL: invalid */
static const char *take_number(const char *s, int base, char stop, uint64_t below, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, base);
	return isdigit((unsigned char)*s) && !errno && *ret < below && (!*end || *end == stop) ? end : NULL;
}

/* Applies a symbolic mode to the current one. */
static int change_mode(struct edit *e, const char *mode, const char *path, bool itself, struct btrkit_error *err)
{
	struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE };
	struct btrkit_inode now;
	struct btrkit_found f;
	int ret = find(e, path, itself, &f, err);

	if (!ret)
		ret = btrkit_txn_flush(e->txn, err);
	if (!ret)
		ret = btrkit_inode_get(e->fs, f.root, f.inode, &now, err);
	if (!ret)
		ret = edit_mode(mode, now.mode, &attr.mode, err);
	return ret ? ret : btrkit_txn_set_attr(e->txn, f.root, f.inode, &attr, err);
}

int edit_chmod(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_attr attr = { .mask = BTRKIT_ATTR_MODE };
	uint64_t mode;
	int ret;

	if (take_number(words[0], 8, '\0', 010000, &mode)) {
		attr.mode = (uint32_t)mode;
		return set_each(e, words + 1, n - 1, flags, &attr, err);
	}
	/* Check the syntax first, independently of the files. */
	ret = edit_mode(words[0], 0, &attr.mode, err);
	for (size_t i = 1; !ret && i < n; i++)
		ret = change_mode(e, words[0], words[i], flags, err);
	return ret;
}

int edit_chown(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	struct btrkit_attr attr = { 0 };
	const char *at = words[0];
	uint64_t id = 0;

	if (*at != ':') {
		at = take_number(at, 10, ':', UINT32_MAX, &id);
		attr.mask |= BTRKIT_ATTR_UID;
		attr.uid = (uint32_t)id;
	}
	if (at && *at) {
		at = take_number(at + 1, 10, '\0', UINT32_MAX, &id);
		attr.mask |= BTRKIT_ATTR_GID;
		attr.gid = (uint32_t)id;
	}
	if (!at)
		return edit_fail(err, EINVAL, "invalid owner: expected UID, UID:GID or :GID, as numbers");
	return set_each(e, words + 1, n - 1, flags, &attr, err);
}

/* Parses "now", or "@" and seconds with up to nine decimal places. @return false: invalid */
static bool take_time(const char *s, struct btrkit_time *ret)
{
	const bool before = s[0] == '@' && s[1] == '-';
	uint64_t sec, unit = 100000000;
	struct timespec now;
	uint32_t nsec = 0;

	if (!strcmp(s, "now")) {
		clock_gettime(CLOCK_REALTIME, &now);
		*ret = (struct btrkit_time){ now.tv_sec, (uint32_t)now.tv_nsec };
		return true;
	}
	s = *s == '@' ? take_number(s + 1 + before, 10, '.', INT64_MAX, &sec) : NULL;
	if (!s)
		return false;
	for (s += *s == '.'; isdigit((unsigned char)*s) && unit; s++, unit /= 10)
		nsec += (uint32_t)(unit * (uint64_t)(*s - '0'));
	/* nsec always counts forward, also before 1970. */
	*ret = (struct btrkit_time){ before ? -(int64_t)sec : (int64_t)sec, nsec };
	if (before && nsec)
		*ret = (struct btrkit_time){ ret->sec - 1, 1000000000 - nsec };
	return !*s;
}

int edit_touch(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	static const unsigned masks[] = { BTRKIT_ATTR_ATIME | BTRKIT_ATTR_MTIME, BTRKIT_ATTR_ATIME, BTRKIT_ATTR_MTIME,
					  BTRKIT_ATTR_ATIME | BTRKIT_ATTR_MTIME };
	struct btrkit_attr attr = { .mask = masks[flags & 3] };

	if (!take_time(words[0], &attr.atime))
		return edit_fail(err, EINVAL, "invalid time: expected now or @SECONDS[.FRACTION]");
	attr.mtime = attr.atime;
	return set_each(e, words + 1, n - 1, flags & 4, &attr, err);
}

static int find_flags(const char *s, uint32_t *ret)
{
	static const char letters[] = "ACDSacdim";
	static const uint32_t bits[] = { FS_NOATIME_FL, FS_NOCOW_FL, FS_DIRSYNC_FL,   FS_SYNC_FL,  FS_APPEND_FL,
					 FS_COMPR_FL,	FS_NODUMP_FL, FS_IMMUTABLE_FL, FS_NOCOMP_FL };

	for (*ret = 0; *s; s++) {
		const char *at = strchr(letters, *s);

		if (!at)
			return -EINVAL;
		*ret |= bits[at - letters];
	}
	return 0;
}

int edit_chattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	const char how = words[0][0];
	uint32_t bits;
	int ret = 0;

	if (!how || !strchr("+-=", how) || find_flags(words[0] + 1, &bits))
		return edit_fail(err, EINVAL, "invalid flags: expected +, - or =, and letters of ACDSacdim");
	for (size_t i = 1; !ret && i < n; i++) {
		struct btrkit_found f;

		ret = find(e, words[i], flags, &f, err);
		if (!ret)
			ret = btrkit_txn_set_flags(e->txn, f.root, f.inode, how == '-' ? 0 : bits,
						   how == '=' ? UINT32_MAX : bits, err);
	}
	return ret;
}

/* Decodes hexadecimal bytes after 0x; any other value is literal. @return the number of bytes, -1: invalid */
static long decode(char *value)
{
	static const char digits[] = "0123456789abcdef";
	long n = 0;

	if (value[0] != '0' || value[1] != 'x')
		return (long)strlen(value);
	for (const char *s = value + 2; *s; s += 2) {
		const char *high = strchr(digits, tolower((unsigned char)s[0]));
		const char *low = s[1] ? strchr(digits, tolower((unsigned char)s[1])) : NULL;

		if (!high || !low)
			return -1;
		value[n++] = (char)((high - digits) << 4 | (low - digits));
	}
	return n;
}

int edit_setxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	static const unsigned how[] = { 0, BTRKIT_XATTR_CREATE, BTRKIT_XATTR_REPLACE,
					BTRKIT_XATTR_CREATE | BTRKIT_XATTR_REPLACE };
	const long size = decode(words[1]);
	int ret = 0;

	if (size < 0)
		return edit_fail(err, EINVAL, "invalid value: expected two hexadecimal digits per byte after 0x");
	for (size_t i = 2; !ret && i < n; i++) {
		struct btrkit_found f;

		ret = find(e, words[i], flags & 4, &f, err);
		if (!ret)
			ret = btrkit_txn_xattr_set(e->txn, f.root, f.inode, words[0], words[1], (size_t)size,
						   how[flags & 3], err);
	}
	return ret;
}

int edit_rmxattr(struct edit *e, char **words, size_t n, unsigned flags, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 1; !ret && i < n; i++) {
		struct btrkit_found f;

		ret = find(e, words[i], flags, &f, err);
		if (!ret)
			ret = btrkit_txn_xattr_remove(e->txn, f.root, f.inode, words[0], err);
	}
	return ret;
}
