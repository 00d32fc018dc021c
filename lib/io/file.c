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
#include "lib/io/spec.h"

struct file_io {
	struct btrkit_io io;
	int fd;
	bool block; /* a block device, not a file */
	uint64_t start; /* of the part that io is, in bytes from the start of the file */
};

#define DISCARD_MAX (1ull << 30)
#define DISCARD_ALIGN 4096u	/* what every block device can do */

static int file_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct file_io *f = (struct file_io *)io;
	uint8_t *to = buf;

	offset += f->start;
	while (len) {
		ssize_t n = pread(f->fd, to, len, (off_t)offset);

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

static int file_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct file_io *f = (struct file_io *)io;
	const uint8_t *from = buf;

	offset += f->start;
	while (len) {
		ssize_t n = pwrite(f->fd, from, len, (off_t)offset);

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

static int file_flush(struct btrkit_io *io)
{
	return fsync(((struct file_io *)io)->fd) ? -errno : 0;
}

/*
 * In pieces, in the order of addresses: a device may take long over one, and a signal ends a program only between them.
 */
static int file_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;
	uint64_t at = f->start + offset, end = at + len;

	if (f->block) {
		at = (at + DISCARD_ALIGN - 1) / DISCARD_ALIGN * DISCARD_ALIGN;
		end = end / DISCARD_ALIGN * DISCARD_ALIGN;
	}
	while (at < end) {
		uint64_t range[2] = { at, end - at < DISCARD_MAX ? end - at : DISCARD_MAX };
		int ret = f->block ? ioctl(f->fd, BLKDISCARD, range) :
				     fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)range[0],
					       (off_t)range[1]);

		if (ret && errno == EINTR)
			continue;
		if (ret)
			return errno == EOPNOTSUPP ? 0 : -errno;
		at += range[1];
	}
	return 0;
}

static void file_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct file_io *f = (struct file_io *)io;

	/* Advice: what it cannot do, the read that follows will. */
	(void)posix_fadvise(f->fd, (off_t)(f->start + offset), (off_t)len, POSIX_FADV_WILLNEED);
}

static void file_close(struct btrkit_io *io)
{
	close(((struct file_io *)io)->fd);
	free(io);
}

static const struct btrkit_io_ops read_only_ops = {
	.read = file_read,
	.prefetch = file_prefetch,
	.close = file_close,
};

static const struct btrkit_io_ops read_write_ops = {
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.discard = file_discard,
	.prefetch = file_prefetch,
	.close = file_close,
};

/* Opens @path if it is a block device or a regular file; *size is its size. */
static int open_device(const char *path, int flags, struct file_io *ret, uint64_t *size, struct btrkit_error *err)
{
	struct stat st;
	int fd;

	/* O_NONBLOCK: a fifo must not make open() wait before it can be refused. */
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_system(err, errno, "cannot open");
	if (fstat(fd, &st)) {
		int saved = errno;

		close(fd);
		return err_system(err, saved, "cannot stat");
	}
	if (S_ISREG(st.st_mode)) {
		*size = (uint64_t)st.st_size;
	} else if (S_ISBLK(st.st_mode)) {
		if (ioctl(fd, BLKGETSIZE64, size)) {
			int saved = errno;

			close(fd);
			return err_system(err, saved, "cannot tell the size of the device");
		}
	} else {
		close(fd);
		return err_set(err, S_ISDIR(st.st_mode) ? BTRKIT_NOT_BTRFS : BTRKIT_INVALID,
			       S_ISDIR(st.st_mode) ? "not a btrfs filesystem: it is a directory" :
						     "neither a block device nor a regular file");
	}
	ret->fd = fd;
	ret->block = S_ISBLK(st.st_mode);
	return 0;
}

int btrkit_io_open(const char *spec, unsigned flags, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct file_io opened = { 0 }, *f;
	struct io_spec part;
	uint64_t size;
	int r;

	if (flags & ~(unsigned)BTRKIT_IO_WRITE)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	r = io_spec_parse(spec, &part, err);
	if (r)
		return r;
	r = open_device(part.path, flags & BTRKIT_IO_WRITE ? O_RDWR : O_RDONLY, &opened, &size, err);
	if (!r) {
		r = io_spec_locate(&part, opened.fd, size, err);
		if (r)
			close(opened.fd);
	}
	free(part.path);
	if (r)
		return r;
	f = calloc(1, sizeof(*f));
	if (!f) {
		close(opened.fd);
		return err_nomem(err);
	}
	*f = opened;
	f->io.ops = flags & BTRKIT_IO_WRITE ? &read_write_ops : &read_only_ops;
	f->io.size = part.size;
	f->start = part.offset;
	snprintf(f->io.name, sizeof(f->io.name), "%s", spec);
	*ret = &f->io;
	return 0;
}
