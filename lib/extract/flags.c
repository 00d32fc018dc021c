// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets inode flags of extracted files, if the target's filesystem supports them. */
#include "lib/extract/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "lib/format/items/files/inode.h"

/* Bits of d->refused for flags; those for attributes are below. */
#define REFUSED_SHIFT 8

/*
 * Flags that can only be set with FS_IOC_SETFLAGS, which replaces all flags, and in Linux also changes the property
 * btrfs.compression. They affect what is written afterwards.
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

/* The other flags. The last two prevent further changes. */
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

/* Reports each unsupported flag once. */
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
	/* Clear flags inherited from the directory. */
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
	/* Do not open a device. These files have no such flags. */
	if (!S_ISREG(item->i.mode))
		return -1;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !ioctl(fd, FS_IOC_FSGETXATTR, &a)) {
		a.fsx_xflags &= ~FIXED_FLAGS;
		(void)ioctl(fd, FS_IOC_FSSETXATTR, &a);
	}
	return fd;
}
