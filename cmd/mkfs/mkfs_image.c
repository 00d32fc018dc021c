// SPDX-License-Identifier: LGPL-2.1-or-later
/* Image files that are filled: their size and creation. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/mkfs/mkfs.h"

/* Whether the name is not a file, but selects a part of one. */
static bool is_part(const char *path)
{
	struct stat st;

	return strchr(path, '?') && stat(path, &st);
}

/* Whether the size follows from the contents: not for devices and parts of files, nor if a size is requested. */
static bool fits(const struct mkfs_request *req)
{
	struct stat st;

	if (req->shrink || req->opts.flags & BTRKIT_MKFS_DRY)
		return true;
	for (size_t i = 0; i < req->num_devices; i++)
		if (is_part(req->devices[i]) || (!stat(req->devices[i], &st) && !S_ISREG(st.st_mode)))
			return false;
	return !req->opts.byte_count || cmd_is_mkfs_btrfs;
}

void mkfs_check_image(struct mkfs_request *req)
{
	struct btrkit_mkfs_options *o = &req->opts;
	struct stat st;

	if (!fits(req))
		return;
	o->flags |= BTRKIT_MKFS_FIT;
	if (req->shrink)
		o->byte_count = 0;
	if (!cmd_is_mkfs_btrfs || req->shrink || o->flags & BTRKIT_MKFS_DRY || req->num_devices > 1 ||
	    stat(req->devices[0], &st))
		return;
	/* mkfs.btrfs never shrinks such a file, and enlarges it only if the contents do not fit. */
	req->keep_size = (uint64_t)st.st_size;
	if (!o->byte_count)
		o->byte_count = req->keep_size;
}

int mkfs_create_image(const struct mkfs_request *req, const char *path, bool *created)
{
	int fd;

	*created = false;
	if (!req->opts.source || is_part(path))
		return 0;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	close(fd);
	*created = true;
	return 0;
}

int mkfs_enlarge_image(const struct mkfs_request *req, struct btrkit_io *io, struct btrkit_error *err)
{
	const struct btrkit_mkfs_options *o = &req->opts;
	int ret;

	if (!o->source || o->flags & BTRKIT_MKFS_FIT || io->size >= o->byte_count)
		return 0;
	/* An undo file cannot restore the size of a device; the library reports what is missing. */
	if (req->undo)
		return 0;
	ret = btrkit_io_resize(io, o->byte_count, err);
	/* If the device cannot be resized, the library reports that it is too small. */
	return ret == -EOPNOTSUPP ? 0 : ret;
}

int mkfs_restore_size(const struct mkfs_request *req)
{
	struct stat st;

	if (stat(req->devices[0], &st))
		return -errno;
	return (uint64_t)st.st_size < req->keep_size && truncate(req->devices[0], (off_t)req->keep_size) ? -errno : 0;
}
