// SPDX-License-Identifier: LGPL-2.1-or-later
/* Block devices and image files, or a part of one. */
#include <btrkit/io.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "lib/base/err.h"
#include "lib/io/file.h"
#include "lib/io/guard.h"
#include "lib/io/place.h"
#include "lib/io/spec.h"
#include "lib/io/undo.h"
#include "lib/io/zone.h"

struct file_io {
	struct btrkit_io io;
	int fd;
	bool block; /* a block device, not a file */
	bool part;  /* of a file */
	uint64_t start; /* of the part that io is, in bytes from the start of the file */
	struct guard guard;
	uint64_t waiting; /* bytes that were written since the system was asked to begin with them; atomic */
};

#define BEHIND_BYTES (2u << 20)

#define DISCARD_MAX (1ull << 30)
#define DISCARD_ALIGN 4096u	/* what every block device can do */

int io_file_pread(int fd, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		ssize_t n = pread(fd, to, len, (off_t)offset);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!n)
			return -ENODATA;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int io_file_pwrite(int fd, uint64_t offset, const void *buf, size_t len)
{
	const uint8_t *from = buf;

	while (len) {
		ssize_t n = pwrite(fd, from, len, (off_t)offset);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!n)
			return -EIO;
		from += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int file_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct file_io *f = (const struct file_io *)io;

	return io_file_pread(f->fd, f->start + offset, buf, len);
}

/* When much was written the device may as well begin with it, so that a flush need not wait for all of it. */
static void write_behind(struct file_io *f, size_t len)
{
	if (__atomic_add_fetch(&f->waiting, len, __ATOMIC_RELAXED) < BEHIND_BYTES)
		return;
	__atomic_store_n(&f->waiting, 0, __ATOMIC_RELAXED);
	/* Advice: where it fails, the flush will tell why. */
	(void)sync_file_range(f->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int file_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct file_io *f = (struct file_io *)io;
	const int ret = io_file_pwrite(f->fd, f->start + offset, buf, len);

	if (!ret)
		write_behind(f, len);
	return ret;
}

static int file_flush(struct btrkit_io *io)
{
	return fsync(((struct file_io *)io)->fd) ? -errno : 0;
}

/*
 * In pieces, in the order of addresses: a device may take long over one, and a signal ends a program only between them.
 */
static int discard_block(int fd, uint64_t at, uint64_t end)
{
	at = (at + DISCARD_ALIGN - 1) / DISCARD_ALIGN * DISCARD_ALIGN;
	end = end / DISCARD_ALIGN * DISCARD_ALIGN;
	while (at < end) {
		uint64_t range[2] = { at, end - at < DISCARD_MAX ? end - at : DISCARD_MAX };

		if (!ioctl(fd, BLKDISCARD, range))
			at += range[1];
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Only what holds data is punched out: space that was allocated and never written stays allocated. */
static int discard_file(int fd, uint64_t at, uint64_t end)
{
	while (at < end) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;
		uint64_t len;

		if (data < 0)
			return errno == ENXIO ? 0 : -errno;
		if ((uint64_t)data >= end)
			return 0;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		at = (uint64_t)data;
		len = ((uint64_t)hole < end ? (uint64_t)hole : end) - at;
		if (len > DISCARD_MAX)
			len = DISCARD_MAX;
		if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, data, (off_t)len))
			at += len;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* Blocks of a device are always there. */
static int file_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;

	if (f->block)
		return 0;
	while (fallocate(f->fd, FALLOC_FL_KEEP_SIZE, (off_t)(f->start + offset), (off_t)len)) {
		if (errno == EOPNOTSUPP)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int file_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;
	uint64_t at = f->start + offset;
	int ret = f->block ? discard_block(f->fd, at, at + len) : discard_file(f->fd, at, at + len);

	return ret == -EOPNOTSUPP ? 0 : ret;
}

static void file_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;

	/* Advice: what it cannot do, the read that follows will. */
	(void)posix_fadvise(f->fd, (off_t)(f->start + offset), (off_t)len, POSIX_FADV_WILLNEED);
}

static int file_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	const struct file_io *f = (const struct file_io *)io;

	return f->block ? io_zone_of_block(f->fd, f->start, offset, ret) : 1;
}

static int file_resize(struct btrkit_io *io, uint64_t size)
{
	const struct file_io *f = (const struct file_io *)io;

	if (f->block || f->part)
		return -EOPNOTSUPP;
	return size > INT64_MAX ? -EFBIG : ftruncate(f->fd, (off_t)size) ? -errno : 0;
}

static int file_clone(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len)
{
	const struct file_io *f = (const struct file_io *)io;
	const struct file_clone_range range = {
		.src_fd = fd, .src_offset = from, .src_length = len, .dest_offset = f->start + offset
	};

	if (f->block)
		return -EOPNOTSUPP;
	while (ioctl(f->fd, FICLONERANGE, &range))
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void file_close(struct btrkit_io *io)
{
	struct file_io *f = (struct file_io *)io;

	close(f->fd);
	io_guard_release(&f->guard);
	free(f);
}

static const struct btrkit_io_ops read_only_ops = {
	.read = file_read,
	.prefetch = file_prefetch,
	.zone = file_zone,
	.close = file_close,
};

static const struct btrkit_io_ops read_write_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.discard = file_discard,
	.reserve = file_reserve,
	.resize = file_resize,
	.clone = file_clone,
	.prefetch = file_prefetch,
	.zone = file_zone,
	.close = file_close,
};

bool io_file_place(const struct btrkit_io *io, int *fd, uint64_t *start)
{
	const struct btrkit_io *below = undo_below(io);
	const struct file_io *f = (const struct file_io *)below;

	if (below->ops != &read_only_ops && below->ops != &read_write_ops)
		return false;
	*fd = f->fd;
	*start = f->start;
	return true;
}

static bool find_places(const struct btrkit_io *io, struct places *ret)
{
	struct place place;
	struct stat st;
	uint64_t start;
	int fd;

	if (!io_file_place(io, &fd, &start) || fstat(fd, &st))
		return false;
	place = place_of(&st, start, io->size);
	places_find(&place, ret);
	return true;
}

bool io_file_shared(const struct btrkit_io *a, const struct btrkit_io *b)
{
	struct places x, y;

	if (!find_places(a, &x) || !find_places(b, &y))
		return false;
	for (size_t i = 0; i < x.n; i++)
		for (size_t j = 0; j < y.n; j++)
			if (place_overlap(&x.at[i], &y.at[j]).len)
				return true;
	return false;
}

bool io_file_reads(const struct btrkit_io *io, const struct stat *st)
{
	const struct place is = place_of(st, 0, UINT64_MAX);
	struct places places;

	/* Others need no look at what lies on what. */
	if (!S_ISBLK(st->st_mode) && (!S_ISREG(st->st_mode) || (uint64_t)st->st_size < io->size))
		return false;
	if (!find_places(io, &places))
		return false;
	for (size_t i = 0; i < places.n; i++)
		if (place_overlap(&is, &places.at[i]).len)
			return true;
	return false;
}

static int open_flags(unsigned flags)
{
	/* O_NONBLOCK: a fifo must not make open() wait before it can be refused. */
	return (flags & BTRKIT_IO_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
}

static int say_unopened(int errnum, unsigned flags, struct btrkit_error *err)
{
	if (errnum == EBUSY)
		return err_set(err, BTRKIT_BUSY, "in use by the kernel (mounted, or part of another device)");
	/* What cannot be written to at all is better told as what it is. */
	if (errnum == EISDIR)
		return err_set(err, BTRKIT_INVALID, "is a directory");
	return err_system(err, errnum, "cannot open%s", flags & BTRKIT_IO_WRITE ? " for writing" : "");
}

/* Whether the file is one that is read and written here; *size is its size. */
static int judge(struct file_io *f, unsigned flags, struct stat *st, uint64_t *size, struct btrkit_error *err)
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
		return err_system(err, errno, "cannot tell the size of the device");
	/* Linux lets root open such a device for writing and then fails the writes. */
	if (f->block && flags & BTRKIT_IO_WRITE && !ioctl(f->fd, BLKROGET, &read_only) && read_only)
		return err_system(err, EROFS, "cannot open for writing");
	return 0;
}

static bool is_block(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode);
}

/* Of a block device O_EXCL asks that nothing is mounted from it, of a file it is undefined. */
static int exclusive(unsigned flags)
{
	return flags & BTRKIT_IO_EXCLUSIVE ? O_EXCL : 0;
}

/*
 * A part that Linux has as a partition is read and written by that: its cache is another one than the disk's, and other
 * partitions may be in use.
 */
static int enter_partition(struct file_io *f, unsigned flags, struct io_spec *part, struct stat *st,
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

/* Opens what @part names, and says in it where in the file that is. After a failure f->fd may be open. */
static int open_part(struct io_spec *part, unsigned flags, struct file_io *f, struct btrkit_error *err)
{
	const bool is_part = part->offset || part->size || part->partition;
	const bool block = is_block(part->path);
	int how = open_flags(flags), ret;
	struct stat st;
	uint64_t size;

	/* Which partition it is, is read from the disk. */
	if (block)
		how = is_part ? open_flags(BTRKIT_IO_READ) : how | exclusive(flags);
	f->fd = open(part->path, how);
	if (f->fd < 0)
		return say_unopened(errno, flags, err);
	f->part = is_part;
	ret = judge(f, flags, &st, &size, err);
	if (!ret && f->block != block)
		ret = err_set(err, BTRKIT_BUSY, "changed while it was being opened");
	if (!ret)
		ret = io_spec_locate(part, f->fd, size, err);
	if (!ret && block && is_part)
		ret = enter_partition(f, flags, part, &st, err);
	if (!ret && flags & BTRKIT_IO_EXCLUSIVE)
		ret = io_guard(f->fd, &st, part->offset, part->size, flags & BTRKIT_IO_WRITE, &f->guard, err);
	return ret;
}

int btrkit_io_open(const char *spec, unsigned flags, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct file_io opened = { .fd = -1 }, *f;
	struct io_spec part;
	int r;

	if (flags & ~(unsigned)(BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE))
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	r = io_spec_parse(spec, &part, err);
	if (r)
		return r;
	r = open_part(&part, flags, &opened, err);
	free(part.path);
	f = r ? NULL : calloc(1, sizeof(*f));
	if (!f) {
		if (opened.fd >= 0)
			close(opened.fd);
		io_guard_release(&opened.guard);
		return r ? r : err_nomem(err);
	}
	*f = opened;
	f->io.ops = flags & BTRKIT_IO_WRITE ? &read_write_ops : &read_only_ops;
	f->io.size = part.size;
	f->start = part.offset;
	snprintf(f->io.name, sizeof(f->io.name), "%s", spec);
	*ret = &f->io;
	return 0;
}
