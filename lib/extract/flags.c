// SPDX-License-Identifier: LGPL-2.1-or-later
/* Inode flags of what was made, where the target's filesystem has them. */
#include "lib/extract/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "lib/format/items/inode.h"

/* d->refused has bits for these above those of attributes. */
#define REFUSED_SHIFT 8

/*
 * Those for which only one call exists, which says what becomes of all; in Linux it also makes the property
 * btrfs.compression anew. They count for what is written from then on.
 */
static const struct {
	uint64_t on_disk;
	unsigned flag;
	char letter;
} early[] = {
	{ INODE_NODATACOW, FS_NOCOW_FL, 'C' },
	{ INODE_COMPRESS, FS_COMPR_FL, 'c' },
	{ INODE_NOCOMPRESS, FS_NOCOMP_FL, 'm' },
	{ INODE_DIRSYNC, FS_DIRSYNC_FL, 'D' },
};
#define EARLY_FLAGS (FS_NOCOW_FL | FS_COMPR_FL | FS_NOCOMP_FL | FS_DIRSYNC_FL)

/* The others; the last two are what allows nothing more. */
static const struct {
	uint64_t on_disk;
	uint32_t flag;
	char letter;
} late[] = {
	{ INODE_SYNC, FS_XFLAG_SYNC, 'S' },	      { INODE_NOATIME, FS_XFLAG_NOATIME, 'A' },
	{ INODE_NODUMP, FS_XFLAG_NODUMP, 'd' },	      { INODE_APPEND, FS_XFLAG_APPEND, 'a' },
	{ INODE_IMMUTABLE, FS_XFLAG_IMMUTABLE, 'i' },
};
#define FIXED_FLAGS ((uint32_t)(FS_XFLAG_APPEND | FS_XFLAG_IMMUTABLE))

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What cannot be set here is told once for each flag. */
static int refuse(struct extract *x, const struct extract_item *item, char letter, size_t number)
{
	struct directory *d = x->to;
	const unsigned bit = 1u << (REFUSED_SHIFT + number);
	const int errnum = errno;

	if (d->refused & bit)
		return 0;
	d->refused |= bit;
	return extract_unmade(x, item->path, errnum == ENOTTY ? EOPNOTSUPP : errnum, "cannot set inode flag %c",
			      letter);
}

static bool is_wanted(const struct extract *x)
{
	return x->opts->flags & BTRKIT_EXTRACT_INODE_FLAGS;
}

int flags_set_early(struct extract *x, const struct extract_item *item, int fd)
{
	unsigned now;
	int ret = 0;

	if (!is_wanted(x))
		return 0;
	if (ioctl(fd, FS_IOC_GETFLAGS, &now))
		now = 0;
	/* What it has got from its directory. */
	if (now & EARLY_FLAGS) {
		now &= ~(unsigned)EARLY_FLAGS;
		(void)ioctl(fd, FS_IOC_SETFLAGS, &now);
	}
	for (size_t i = 0; i < COUNT(early) && !ret; i++) {
		const unsigned flags = now | early[i].flag;

		if (!(item->i.flags & early[i].on_disk))
			continue;
		if (ioctl(fd, FS_IOC_SETFLAGS, &flags))
			ret = refuse(x, item, early[i].letter, i);
		else
			now = flags;
	}
	return ret;
}

int flags_set_late(struct extract *x, const struct extract_item *item, int fd)
{
	int ret = 0;

	if (!is_wanted(x))
		return 0;
	for (size_t i = 0; i < COUNT(late) && !ret; i++) {
		struct fsxattr a;

		if (!(item->i.flags & late[i].on_disk))
			continue;
		if (!ioctl(fd, FS_IOC_FSGETXATTR, &a)) {
			a.fsx_xflags |= late[i].flag;
			if (!ioctl(fd, FS_IOC_FSSETXATTR, &a))
				continue;
		}
		ret = refuse(x, item, late[i].letter, COUNT(early) + i);
	}
	return ret;
}

int flags_lift(const struct extract *x, const struct extract_item *item, int dir, const char *name)
{
	struct fsxattr a;
	int fd;

	if (!is_wanted(x) || !(item->i.flags & (INODE_APPEND | INODE_IMMUTABLE)))
		return -1;
	/* A device is not opened, and has none. */
	if (!S_ISREG(item->i.mode))
		return -1;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !ioctl(fd, FS_IOC_FSGETXATTR, &a)) {
		a.fsx_xflags &= ~FIXED_FLAGS;
		(void)ioctl(fd, FS_IOC_FSSETXATTR, &a);
	}
	return fd;
}
