// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file of an undo log. It grows on writes, and is removed if nothing was done. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/io/file.h"
#include "lib/io/undo_log.h"

struct undo_file {
	struct btrkit_io io;
	int fd, dir;
	char *name;	/* in the directory */
};

static int grow_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	return io_file_pread(((struct undo_file *)io)->fd, offset, buf, len);
}

static int grow_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	return io_file_pwrite(((struct undo_file *)io)->fd, offset, buf, len);
}

static int grow_flush(struct btrkit_io *io)
{
	return fdatasync(((struct undo_file *)io)->fd) ? -errno : 0;
}

static void grow_close(struct btrkit_io *io)
{
	struct undo_file *f = (struct undo_file *)io;

	if (f->fd >= 0)
		close(f->fd);
	if (f->dir >= 0)
		close(f->dir);
	free(f->name);
	free(f);
}

static const struct btrkit_io_ops grow_ops = {
	.read = grow_read,
	.write = grow_write,
	.flush = grow_flush,
	.close = grow_close,
};

void undo_file_remove(struct btrkit_io *file)
{
	struct undo_file *f = (struct undo_file *)file;

	if (file->ops == &grow_ops && f->fd >= 0)
		unlinkat(f->dir, f->name, 0);
}

/* Detects the common case: the filesystem has the number of its block device. Most others are refused by the guards. */
static int refuse_own_device(const struct undo_file *f, const struct btrkit_io *device, struct btrkit_error *err)
{
	struct stat file, st;
	uint64_t start;
	int fd;

	if (!io_file_place(device, &fd, &start))
		return 0;
	if (fstat(f->fd, &file) || fstat(fd, &st))
		return err_system(err, errno, "cannot stat");
	if (S_ISBLK(st.st_mode) && file.st_dev == st.st_rdev)
		return err_set(err, BTRKIT_INVALID, "is on the device itself");
	return 0;
}

/* Makes the name of the file durable. Not every filesystem can flush a directory. */
static int keep_name(const struct undo_file *f, struct btrkit_error *err)
{
	if (fsync(f->dir) && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return err_system(err, errno, "cannot flush its directory");
	return 0;
}

static int create(struct undo_file *f, const char *path, struct btrkit_io *const *devices, size_t n,
		  struct btrkit_error *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int ret = 0;

	f->name = strdup(slash ? slash + 1 : path);
	if (!folder || !f->name) {
		free(folder);
		return err_nomem(err);
	}
	f->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (f->dir < 0)
		return err_system(err, errno, "cannot open its directory");
	/* The file may contain deleted data of the device, which others must not be able to read. */
	f->fd = openat(f->dir, f->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0)
		return err_system(err, errno, "cannot create");
	for (size_t i = 0; !ret && i < n; i++)
		ret = refuse_own_device(f, devices[i], err);
	if (!ret)
		ret = keep_name(f, err);
	if (ret)
		undo_file_remove(&f->io);
	return ret;
}

int undo_file_create(const char *path, struct btrkit_io *const *devices, size_t n, struct btrkit_io **ret,
		     struct btrkit_error *err)
{
	struct undo_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_nomem(err);
	f->io.ops = &grow_ops;
	f->io.size = INT64_MAX;
	snprintf(f->io.name, sizeof(f->io.name), "%s", path);
	f->fd = f->dir = -1;
	r = create(f, path, devices, n, err);
	if (r) {
		if (err)
			undo_blame_file(err, path);
		btrkit_io_close(&f->io);
		return r;
	}
	*ret = &f->io;
	return 0;
}
