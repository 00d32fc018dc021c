// SPDX-License-Identifier: LGPL-2.1-or-later
/* Block devices and image files, or a part of one. */
#include <btrkit/io.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/fs.h>

#include "lib/base/err.h"
#include "lib/io/file.h"
#include "lib/io/file_open.h"
#include "lib/io/device_range.h"
#include "lib/io/undo.h"
#include "lib/io/zone.h"

struct file_io {
	struct btrkit_io io;
	struct opened_file is;
	uint64_t start; /* offset of the part in the file, in bytes */
	uint64_t waiting; /* bytes written since writeback was last started; accessed atomically */
};

#define BEHIND_BYTES (2u << 20)

#define DISCARD_MAX (1ull << 30)
#define DISCARD_ALIGN 4096u	/* supported by all block devices */

int io_file_pread(int fd, uint64_t offset, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		ssize_t n = pread(fd, to, len, (off_t)offset);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			/* ENXIO would mean the end of the file; from Linux, it means that the device is gone. */
			return errno == ENXIO ? -EIO : -errno;
		}
		if (!n)
			return -ENXIO;
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

	return io_file_pread(f->is.fd, f->start + offset, buf, len);
}

/* Starts writeback from time to time, so that a flush does not have to wait for everything. */
static void write_behind(struct file_io *f, size_t len)
{
	if (__atomic_add_fetch(&f->waiting, len, __ATOMIC_RELAXED) < BEHIND_BYTES)
		return;
	__atomic_store_n(&f->waiting, 0, __ATOMIC_RELAXED);
	/* Only a hint: errors are reported by the flush. */
	(void)sync_file_range(f->is.fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int file_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct file_io *f = (struct file_io *)io;
	const int ret = io_file_pwrite(f->is.fd, f->start + offset, buf, len);

	if (!ret)
		write_behind(f, len);
	return ret;
}

static int file_flush(struct btrkit_io *io)
{
	return fsync(((struct file_io *)io)->is.fd) ? -errno : 0;
}

/* Discards piece by piece in address order: a device may take long, and signals are handled between the pieces. */
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

/* Punches out only data: space that was allocated but never written stays allocated. */
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

/* Allocates space in a file. Block devices need no allocation. */
static int file_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;

	if (f->is.block)
		return 0;
	while (fallocate(f->is.fd, FALLOC_FL_KEEP_SIZE, (off_t)(f->start + offset), (off_t)len)) {
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
	int ret = f->is.block ? discard_block(f->is.fd, at, at + len) : discard_file(f->is.fd, at, at + len);

	return ret == -EOPNOTSUPP ? 0 : ret;
}

static void file_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;

	/* Only a hint: on failure the data is read later. */
	(void)posix_fadvise(f->is.fd, (off_t)(f->start + offset), (off_t)len, POSIX_FADV_WILLNEED);
}

static int file_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	const struct file_io *f = (const struct file_io *)io;

	return f->is.block ? io_zone_of_block(f->is.fd, f->start, offset, ret) : 1;
}

static int file_resize(struct btrkit_io *io, uint64_t size)
{
	const struct file_io *f = (const struct file_io *)io;

	if (f->is.block || f->is.part)
		return -EOPNOTSUPP;
	return size > INT64_MAX ? -EFBIG : ftruncate(f->is.fd, (off_t)size) ? -errno : 0;
}

static int file_clone(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len)
{
	const struct file_io *f = (const struct file_io *)io;
	const struct file_clone_range range = {
		.src_fd = fd, .src_offset = from, .src_length = len, .dest_offset = f->start + offset
	};

	if (f->is.block)
		return -EOPNOTSUPP;
	while (ioctl(f->is.fd, FICLONERANGE, &range))
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void file_close(struct btrkit_io *io)
{
	struct file_io *f = (struct file_io *)io;

	close(f->is.fd);
	io_guard_release(&f->is.guard);
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
	*fd = f->is.fd;
	*start = f->start;
	return true;
}

bool io_file_places(const struct btrkit_io *io, struct device_ranges *ret)
{
	struct device_range device_range;
	struct stat st;
	uint64_t start;
	int fd;

	if (!io_file_place(io, &fd, &start) || fstat(fd, &st))
		return false;
	device_range = device_range_of(&st, start, io->size);
	device_ranges_find(&device_range, ret);
	return true;
}

bool io_file_shared(const struct btrkit_io *a, const struct btrkit_io *b)
{
	struct device_ranges x, y;

	if (!io_file_places(a, &x) || !io_file_places(b, &y))
		return false;
	for (size_t i = 0; i < x.n; i++)
		for (size_t j = 0; j < y.n; j++)
			if (device_range_overlap(&x.at[i], &y.at[j]).len)
				return true;
	return false;
}

bool io_file_reads(const struct btrkit_io *io, const struct stat *st)
{
	const struct device_range is = device_range_of(st, 0, UINT64_MAX);
	struct device_ranges device_ranges;

	/* In all other cases there is no need to search the layers below. */
	if (!S_ISBLK(st->st_mode) && (!S_ISREG(st->st_mode) || (uint64_t)st->st_size < io->size))
		return false;
	if (!io_file_places(io, &device_ranges))
		return false;
	for (size_t i = 0; i < device_ranges.n; i++)
		if (device_range_overlap(&is, &device_ranges.at[i]).len)
			return true;
	return false;
}

int btrkit_io_open(const char *spec, unsigned flags, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct opened_file is = { .fd = -1 };
	struct io_spec part;
	struct file_io *f;
	int r;

	if (flags & ~(unsigned)(BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE))
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	r = io_spec_parse(spec, &part, err);
	if (r)
		return r;
	r = file_open(&part, flags, &is, err);
	free(part.path);
	f = r ? NULL : calloc(1, sizeof(*f));
	if (!f) {
		if (is.fd >= 0)
			close(is.fd);
		io_guard_release(&is.guard);
		return r ? r : err_nomem(err);
	}
	f->is = is;
	f->io.ops = flags & BTRKIT_IO_WRITE ? &read_write_ops : &read_only_ops;
	f->io.size = part.size;
	f->start = part.offset;
	snprintf(f->io.name, sizeof(f->io.name), "%s", spec);
	*ret = &f->io;
	return 0;
}
