// SPDX-License-Identifier: LGPL-2.1-or-later
/* Common part of all backends: range checks and messages. */
#include <btrkit/io.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/err.h"

struct btrkit_io *btrkit_io_close(struct btrkit_io *io)
{
	if (io)
		io->ops->close(io);
	return NULL;
}

/*
 * A backend may fail with any errno. Most have other meanings as return values of the library, such as a missing tree
 * or a thread that cannot be started. They become -EIO; the message keeps the details.
 */
static int as_device(int ret, bool writing, struct btrkit_error *err)
{
	if (ret == -ENOMEM || (writing && (ret == -ENOSPC || ret == -EROFS)))
		return ret;
	if (err && ret != -EIO) {
		err->code = BTRKIT_IO;
		err->err = -EIO;
	}
	return -EIO;
}

/* Reports a failure of the backend, with its explanation. */
BTRKIT_PRINTF(4, 5)
static int blame(struct btrkit_io *io, struct btrkit_error *err, int ret, const char *fmt, ...)
{
	char what[100];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	ret = err_system(err, ret, "%s", what);
	if (err && io->ops->explain)
		io->ops->explain(io, err);
	return ret;
}

static bool inside(const struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	return len <= io->size && offset <= io->size - len;
}

int btrkit_io_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len, struct btrkit_error *err)
{
	int ret = inside(io, offset, len) ? io->ops->read(io, offset, buf, len) : -ENXIO;

	if (ret == -ENXIO)
		return err_set(err, BTRKIT_TRUNCATED,
			       "read of %zu bytes at %" PRIu64 " is past the end of the device (size %" PRIu64 ")",
			       len, offset, io->size);
	if (ret)
		return as_device(blame(io, err, ret, "cannot read %zu bytes at %" PRIu64, len, offset), false, err);
	return 0;
}

int btrkit_io_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len, struct btrkit_error *err)
{
	int ret;

	if (!io->ops->write)
		return err_system(err, EROFS, "cannot write %zu bytes at %" PRIu64, len, offset);
	if (!inside(io, offset, len))
		return err_set(err, BTRKIT_NO_SPACE, "write of %zu bytes at %" PRIu64 " is past the end of the device",
			       len, offset);
	ret = io->ops->write(io, offset, buf, len);
	if (ret)
		return as_device(blame(io, err, ret, "cannot write %zu bytes at %" PRIu64, len, offset), true, err);
	return 0;
}

int btrkit_io_flush(struct btrkit_io *io, struct btrkit_error *err)
{
	int ret = io->ops->flush ? io->ops->flush(io) : -EROFS;

	return ret ? as_device(blame(io, err, ret, "cannot flush"), true, err) : 0;
}

/* Common part of discard and reserve. */
static int on_range(struct btrkit_io *io, int (*op)(struct btrkit_io *, uint64_t, uint64_t), const char *verb,
		    uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	int ret;

	if (!io->ops->write)
		return err_system(err, EROFS, "cannot %s %" PRIu64 " bytes at %" PRIu64, verb, len, offset);
	if (!inside(io, offset, len))
		return err_set(err, BTRKIT_NO_SPACE,
			       "cannot %s %" PRIu64 " bytes at %" PRIu64 ", past the end of the device", verb, len,
			       offset);
	ret = op && len ? op(io, offset, len) : 0;
	if (ret)
		ret = blame(io, err, ret, "cannot %s %" PRIu64 " bytes at %" PRIu64, verb, len, offset);
	return ret ? as_device(ret, true, err) : 0;
}

int btrkit_io_discard(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	return on_range(io, io->ops->discard, "discard", offset, len, err);
}

int btrkit_io_resize(struct btrkit_io *io, uint64_t size, struct btrkit_error *err)
{
	int ret;

	if (!io->ops->write)
		return err_system(err, EROFS, "cannot be resized");
	if (!io->ops->resize)
		return err_set(err, BTRKIT_UNSUPPORTED, "cannot be resized");
	ret = io->ops->resize(io, size);
	if (ret)
		return blame(io, err, ret, "cannot resize to %" PRIu64 " bytes", size);
	io->size = size;
	return 0;
}

int btrkit_io_clone(struct btrkit_io *io, uint64_t offset, int fd, uint64_t from, uint64_t len,
		    struct btrkit_error *err)
{
	int ret;

	if (!io->ops->write)
		return err_system(err, EROFS, "cannot share %" PRIu64 " bytes at %" PRIu64, len, offset);
	if (!inside(io, offset, len))
		return err_set(err, BTRKIT_NO_SPACE,
			       "cannot share %" PRIu64 " bytes at %" PRIu64 ", past the end of the device", len,
			       offset);
	ret = io->ops->clone ? io->ops->clone(io, offset, fd, from, len) : -EOPNOTSUPP;
	return ret ? blame(io, err, ret, "cannot share %" PRIu64 " bytes at %" PRIu64, len, offset) : 0;
}

int btrkit_io_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	return on_range(io, io->ops->reserve, "reserve", offset, len, err);
}
