// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "lib/base/err.h"
#include "lib/io/device_range.h"

static int open_flags(unsigned flags)
{
	/* O_NONBLOCK: opening a fifo must not block before it can be refused. */
	return (flags & BTRKIT_IO_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
}

static int say_unopened(int errnum, unsigned flags, struct btrkit_error *err)
{
	if (errnum == EBUSY)
		return err_because(err, BTRKIT_CAUSE_IN_USE,
				   err_set(err, BTRKIT_BUSY,
					   "in use by the kernel (mounted, or part of another device)"));
	/* For a directory, that is a better message than "cannot open for writing". */
	if (errnum == EISDIR)
		return err_set(err, BTRKIT_INVALID, "is a directory");
	return err_system(err, errnum, "cannot open%s", flags & BTRKIT_IO_WRITE ? " for writing" : "");
}

/* Checks that the file is of a supported type, and gets its size. */
static int check_opened(struct opened_file *f, unsigned flags, struct stat *st, uint64_t *size,
			struct btrkit_error *err)
{
	int read_only = 0;

	if (fstat(f->fd, st))
		return err_system(err, errno, "cannot stat");
	f->block = S_ISBLK(st->st_mode);
	*size = (uint64_t)st->st_size;
	if (S_ISDIR(st->st_mode))
		return err_set(err, BTRKIT_NOT_BTRFS, "not a btrfs filesystem: it is a directory");
	if (!f->block && !S_ISREG(st->st_mode))
		return err_set(err, BTRKIT_INVALID, "neither a block device nor a regular file");
	if (f->block && ioctl(f->fd, BLKGETSIZE64, size))
		return err_system(err, errno, "cannot determine the size of the device");
	/* Linux lets root open a read-only device for writing, and then fails the writes. */
	if (f->block && flags & BTRKIT_IO_WRITE && !ioctl(f->fd, BLKROGET, &read_only) && read_only)
		return err_system(err, EROFS, "cannot open for writing");
	return 0;
}

static bool is_block(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode);
}

/* For block devices O_EXCL fails if they are mounted; for files it is undefined. */
static int exclusive(unsigned flags)
{
	return flags & BTRKIT_IO_EXCLUSIVE ? O_EXCL : 0;
}

/*
 * If the part is a partition known to Linux, opens that instead: it has a separate page cache, and other partitions of
 * the disk may be in use.
 */
static int enter_partition(struct opened_file *f, unsigned flags, struct io_spec *part, struct stat *st,
			   struct btrkit_error *err)
{
	dev_t expected = st->st_rdev;
	struct partition found;
	const char *path = part->path;

	if (partition_find(st->st_rdev, part->offset, part->size, &found)) {
		part->offset -= found.start;
		expected = found.dev;
		path = found.path;
	}
	close(f->fd);
	f->fd = open(path, open_flags(flags) | exclusive(flags));
	if (f->fd < 0)
		return say_unopened(errno, flags, err);
	if (fstat(f->fd, st) || !S_ISBLK(st->st_mode) || st->st_rdev != expected)
		return err_set(err, BTRKIT_BUSY, "changed while it was being opened");
	return 0;
}

/*
 * A mounted filesystem bypasses the page cache of its device. Pages stay in that cache while anybody has the device
 * open, and may be stale. Dropping them needs no privileges, unlike BLKFLSBUF.
 */
static void drop_cached(int fd)
{
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

int file_open(struct io_spec *part, unsigned flags, struct opened_file *f, struct btrkit_error *err)
{
	const bool is_part = part->offset || part->size || part->partition;
	const bool block = is_block(part->path);
	int how = open_flags(flags), ret;
	struct stat st;
	uint64_t size;

	/* The partition table is read from the whole disk. */
	if (block)
		how = is_part ? open_flags(BTRKIT_IO_READ) : how | exclusive(flags);
	f->fd = open(part->path, how);
	if (f->fd < 0)
		return say_unopened(errno, flags, err);
	f->part = is_part;
	ret = check_opened(f, flags, &st, &size, err);
	if (!ret && f->block != block)
		ret = err_set(err, BTRKIT_BUSY, "changed while it was being opened");
	if (!ret)
		ret = io_spec_locate(part, f->fd, size, err);
	if (!ret && block && is_part)
		ret = enter_partition(f, flags, part, &st, err);
	if (!ret && block)
		drop_cached(f->fd);
	if (!ret && flags & BTRKIT_IO_EXCLUSIVE)
		ret = io_guard(f->fd, &st, part->offset, part->size, flags & BTRKIT_IO_WRITE, &f->guard, err);
	return ret;
}
