// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/extract/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/io/file.h"
#include "lib/volume/volume.h"

/* Whether @name is a device that the filesystem is read from, or a file under one. */
static bool is_read(const struct extract *x, int dir, const char *name)
{
	const struct volume *v = x->fs->volume;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct btrkit_io *io = volume_device(v, i).io;

		if (io && io_file_reads(io, &st))
			return true;
	}
	return false;
}

/*
 * Removes an existing file, like tar does, or an empty directory, but nothing that the filesystem is read from.
 * @return 0; -1 with errno set
 */
static int remove_at(const struct extract *x, int dir, const char *name)
{
	if (is_read(x, dir, name)) {
		errno = ETXTBSY;
		return -1;
	}
	if (!unlinkat(dir, name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR);
}

/* Report that @path could not be created. @return as extract_unmade() */
static int unmade(struct extract *x, const char *path, int errnum, const char *what)
{
	if (errnum == ETXTBSY)
		return extract_unmade(x, path, EBUSY, "%s in place of what is being read", what);
	return extract_unmade(x, path, errnum, "%s", what);
}

/* The current directory. @return -1 on failure, which was reported; *ret is the result of reporting */
static int here(struct extract *x, const char *path, int *ret)
{
	int fd = levels_fd(x->to);

	*ret = fd < 0 ? extract_unmade(x, path, errno, "cannot reopen directory") : 0;
	return fd;
}

/*
 * Creates and enters a directory. An existing directory is used, anything else is replaced. @return 0; 1: failed and
 * reported; <0
 */
static int make_directory(struct extract *x, const char *path, const char *name)
{
	int ret, dir = here(x, path, &ret), errnum = 0;

	if (dir < 0)
		return ret ? ret : 1;
	for (unsigned tries = 0; tries < 2; tries++) {
		errnum = mkdirat(dir, name, 0700) ? errno : 0;
		if (errnum && errnum != EEXIST)
			break;
		errnum = -levels_enter(x->to, name);
		if (errnum != ENOTDIR && errnum != ELOOP)
			break;
		if (remove_at(x, dir, name)) {
			errnum = errno;
			break;
		}
	}
	if (!errnum)
		return 0;
	ret = unmade(x, path, errnum, "cannot create directory");
	return ret ? ret : 1;
}

static int above(struct extract *x, const char *name)
{
	return make_directory(x, x->path, name);
}

static int above_end(struct extract *x)
{
	levels_leave(x->to);
	return 0;
}

static int enter(struct extract *x, const struct extract_item *item)
{
	int fd, ret = *item->path ? make_directory(x, item->path, item->name) : 0;

	x->result->names += !ret;
	/* An existing directory must not pass these on to what is created in it. It gets its own in the end. */
	fd = ret ? -1 : levels_fd(x->to);
	if (fd >= 0) {
		(void)fremovexattr(fd, "system.posix_acl_default");
		(void)fremovexattr(fd, "btrfs.compression");
	}
	return ret ? ret : extract_progress(x);
}

static int leave(struct extract *x, const struct extract_item *item)
{
	int ret, fd = here(x, item->path, &ret);

	/* It stays as it was created. */
	if (item->inode_lost)
		fd = -1;
	if (fd >= 0)
		ret = flags_set_early(x, item, fd);
	if (fd >= 0 && !ret)
		ret = attributes_set_fd(x, item, fd);
	if (fd >= 0 && !ret)
		ret = flags_set_late(x, item, fd);
	if (*item->path)
		levels_leave(x->to);
	return ret;
}

struct output {
	struct extract *x;
	const struct extract_item *item;
	int fd;
};

static int put(void *ctx, uint64_t offset, const void *data, size_t len)
{
	const struct output *o = ctx;
	const uint8_t *at = data;

	while (len) {
		ssize_t n = pwrite(o->fd, at, len, (off_t)offset);
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret = extract_unmade(o->x, o->item->path, errno, "cannot write");
			return ret ? ret : 1;
		}
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int fill(struct extract *x, const struct extract_item *item, int fd)
{
	struct output o = { x, item, fd };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_file *f;
	uint64_t end = 0;
	int ret;

	ret = btrkit_file_open(x->fs, item->i.root, item->i.inode, &f, &what);
	if (ret)
		return extract_problem(x, item->path, ret, &what);
	ret = extract_contents(x, f, item, put, &o, &end);
	btrkit_file_close(f);
	if (ret < 0)
		return ret;
	/* Holes at the end, and what could not be read there. A file that could not be written ends where that was. */
	return ftruncate(fd, (off_t)end) ? extract_unmade(x, item->path, errno, "cannot set size") : 0;
}

static int make_file(struct extract *x, const struct extract_item *item, int dir)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int ret, fd;

	if (item->i.size > INT64_MAX)
		return extract_unmade(x, item->path, EFBIG, "cannot create file");
	fd = openat(dir, item->name, flags, 0600);
	if (fd < 0 && errno == EEXIST && !remove_at(x, dir, item->name))
		fd = openat(dir, item->name, flags, 0600);
	if (fd < 0)
		return unmade(x, item->path, errno, "cannot create file");
	ret = flags_set_early(x, item, fd);
	if (!ret)
		ret = fill(x, item, fd);
	if (!ret)
		ret = attributes_set_fd(x, item, fd);
	if (!ret)
		ret = flags_set_late(x, item, fd);
	if (close(fd) && !ret)
		ret = extract_unmade(x, item->path, errno, "cannot write");
	/* Remove an incomplete file, except one with damaged contents, which was extracted as far as possible. */
	if (ret)
		(void)unlinkat(dir, item->name, 0);
	else
		x->result->names++;
	return ret;
}

static int make_node(const struct extract_item *item, int dir)
{
	if (S_ISLNK(item->i.mode))
		return symlinkat(item->target, dir, item->name);
	return mknodat(dir, item->name, (item->i.mode & S_IFMT) | 0600, (dev_t)item->i.rdev);
}

static int other(struct extract *x, const struct extract_item *item)
{
	int ret, dir = here(x, item->path, &ret);

	if (dir < 0)
		return ret;
	if (S_ISREG(item->i.mode)) {
		ret = make_file(x, item, dir);
		return ret ? ret : extract_progress(x);
	}
	ret = make_node(item, dir);
	if (ret && errno == EEXIST && !remove_at(x, dir, item->name))
		ret = make_node(item, dir);
	if (ret)
		return unmade(x, item->path, errno,
			      S_ISLNK(item->i.mode) ? "cannot create symbolic link" : "cannot create special file");
	x->result->names++;
	ret = attributes_set_at(x, item, dir);
	return ret ? ret : extract_progress(x);
}

static int make_link(struct extract *x, const struct extract_item *item)
{
	const char *slash = strrchr(item->link, '/'), *name = slash ? slash + 1 : item->link;
	int ret, from, lifted, dir = here(x, item->path, &ret);

	if (dir < 0)
		return ret;
	from = levels_open_parent(x->to, item->link);
	if (from < 0)
		return 1;
	lifted = flags_lift(x, item, from, name);
	ret = linkat(from, name, dir, item->name, 0);
	if (ret && errno == EEXIST && !remove_at(x, dir, item->name))
		ret = linkat(from, name, dir, item->name, 0);
	close(from);
	x->result->names += !ret;
	ret = ret ? 1 : extract_progress(x);
	if (lifted >= 0) {
		const int set = flags_set_late(x, item, lifted);

		close(lifted);
		ret = set ? set : ret;
	}
	return ret;
}

static const struct extract_target directory_target = { above, above_end, enter, leave, other, make_link };

int btrkit_extract(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, const char *directory,
		   const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		   struct btrkit_error *err)
{
	struct directory d = { .room = 8 };
	struct extract x = {
		.fs = fs, .opts = opts, .target = &directory_target, .to = &d, .result = result, .err = err
	};
	int ret;

	if (result)
		*result = (struct btrkit_extract_result){ 0 };
	d.levels = calloc(d.room, sizeof(*d.levels));
	if (!d.levels)
		return err_nomem(err);
	d.levels[0].fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d.levels[0].fd < 0) {
		ret = err_system(err, errno, "%s", directory);
	} else {
		d.n = 1;
		ret = extract_run(&x, root, paths, n);
	}
	levels_close(&d);
	return ret;
}
