// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mkfs.h"

/* The failures of this file, in the form of those of the library. @return a negative errno */
BTRKIT_PRINTF(4, 5)
static int refuse(struct btrkit_error *err, enum btrkit_code code, int errnum, const char *what, ...)
{
	va_list args;

	*err = (struct btrkit_error){ .code = code, .err = -errnum };
	va_start(args, what);
	vsnprintf(err->message, sizeof(err->message), what, args);
	va_end(args);
	return -errnum;
}

static int no_memory(struct btrkit_error *err)
{
	return refuse(err, BTRKIT_NO_MEMORY, ENOMEM, "out of memory");
}

/* Nothing is written before this has returned 0. */
static int guard(const struct mkfs_request *req, const char *device, struct btrkit_io *io, struct btrkit_error *err)
{
	char text[64];
	int ret;

	if (mkfs_queue_value(device, "zoned", text, sizeof(text)) && !strcmp(text, "host-managed"))
		return refuse(err, BTRKIT_UNSUPPORTED, EOPNOTSUPP, "not supported: a %s zoned device", text);
	if (req->force)
		return 0;
	ret = btrkit_io_signature(io, text, sizeof(text), err);
	return ret > 0 ? refuse(err, BTRKIT_BUSY, EBUSY, "there is %s on it, which only -f overwrites", text) : ret;
}

/* Opens and guards device number @i, whose failures name it. */
static int open_device(const struct mkfs_request *req, size_t i, struct btrkit_io **ios, struct btrkit_error *err)
{
	const char *device = req->devices[i];
	int ret = 0;

	/* Locks would tell it otherwise. */
	for (size_t j = 0; !ret && j < i; j++)
		if (cmd_same_device(device, req->devices[j]))
			ret = refuse(err, BTRKIT_INVALID, EINVAL, "is given twice");
	if (!ret)
		ret = btrkit_io_open(device, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &ios[i], err);
	if (!ret)
		ret = guard(req, device, ios[i], err);
	if (ret) {
		err->places |= BTRKIT_AT_DEVID;
		err->devid = i + 1;
	}
	return ret;
}

/* Of one device anybody may have the UUID too: Linux then mounts only one of them, which is said of it. */
static int guard_uuid(const struct mkfs_request *req, struct btrkit_io *const *ios, struct btrkit_error *err)
{
	char name[64];
	int ret;

	if (!req->opts.fsid || req->num_devices == 1)
		return 0;
	ret = btrkit_io_find_fsid(req->opts.fsid, ios, req->num_devices, name, sizeof(name), err);
	return ret > 0 ? refuse(err, BTRKIT_BUSY, EBUSY, "the filesystem on %s has that UUID", name) : ret;
}

/* How far filling is, if anybody looks at it. */
static int filling(void *ctx, uint64_t done, uint64_t total)
{
	struct cmd_progress *p = ctx;

	p->what = "filling";
	return cmd_progress(p, done, total);
}

static int make_on(struct mkfs_request *req, struct btrkit_io **ios, struct btrkit_mkfs_result *result,
		   struct btrkit_error *err)
{
	struct cmd_progress p;
	int ret = 0;

	for (size_t i = 0; !ret && i < req->num_devices; i++)
		ret = open_device(req, i, ios, err);
	if (!ret)
		ret = guard_uuid(req, ios, err);
	if (!ret)
		ret = cmd_keep_undo(req->undo, ios, req->num_devices, err);
	if (ret)
		return ret;
	cmd_progress_begin(&p, "discarding");
	p.terminal &= req->verbosity > 0;
	req->opts.progress = cmd_progress;
	req->opts.filling = filling;
	req->opts.progress_ctx = &p;
	ret = btrkit_mkfs(ios, req->num_devices, &req->opts, result, err);
	cmd_progress_end(&p);
	if (cmd_was_interrupted(ret))
		refuse(err, BTRKIT_SYSTEM, EINTR, "interrupted: there is no filesystem on %s now",
		       req->num_devices > 1 ? "them" : "it");
	return ret;
}

/* Image files that are to be filled need not be there. */
static int create_images(const struct mkfs_request *req, bool *created, struct btrkit_error *err)
{
	for (size_t i = 0; i < req->num_devices; i++) {
		const int ret = mkfs_create_image(req, req->devices[i], &created[i]);

		if (ret) {
			err->places |= BTRKIT_AT_DEVID;
			err->devid = i + 1;
			return refuse(err, BTRKIT_SYSTEM, -ret, "cannot make the image file: %s", strerror(-ret));
		}
	}
	return 0;
}

static int make(struct mkfs_request *req, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(req->num_devices, sizeof(struct btrkit_io *));
	bool *created = calloc(req->num_devices, sizeof(*created));
	int ret;

	if (!ios || !created) {
		free(ios);
		free(created);
		return no_memory(err);
	}
	ret = create_images(req, created, err);
	if (!ret)
		ret = make_on(req, ios, result, err);
	for (size_t i = 0; i < req->num_devices; i++) {
		btrkit_io_close(ios[i]);
		if (ret && created[i])
			unlink(req->devices[i]);
	}
	free(ios);
	free(created);
	return ret;
}

/* Nothing is made: the device, if one is given, is not even opened. */
static int size_only(struct mkfs_request *req, struct btrkit_error *err)
{
	struct btrkit_mkfs_result result;
	struct btrkit_io *io;
	int ret;

	ret = btrkit_io_memory(1, &io, err);
	if (ret)
		return ret;
	ret = btrkit_mkfs(&io, 1, &req->opts, &result, err);
	btrkit_io_close(io);
	if (!ret)
		printf("%" PRIu64 "\n", result.total_bytes);
	return ret;
}

/* The device that failed stands before the failure. */
static int fail(const struct command *cmd, const struct mkfs_request *req, struct btrkit_error *err)
{
	const char *device = req->num_devices == 1 ? req->devices[0] : NULL;

	if (err->places & BTRKIT_AT_DEVID && err->devid && err->devid <= req->num_devices) {
		device = req->devices[err->devid - 1];
		err->places &= ~(unsigned)BTRKIT_AT_DEVID;
	}
	return cmd_fail(cmd, device, err);
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_result result;
	struct mkfs_request req;
	int ret;

	mkfs_parse(cmd, argc, argv, &req);
	req.opts.made = calloc(req.num_devices, sizeof(*req.opts.made));
	if (req.opts.flags & BTRKIT_MKFS_DRY) {
		free(req.opts.made);
		req.opts.made = NULL;
		return size_only(&req, &err) ? fail(cmd, &req, &err) : cmd_close_stdout(cmd->name, EXIT_DONE);
	}
	ret = req.opts.made ? make(&req, &result, &err) : no_memory(&err);
	mkfs_release_source(&req);
	if (ret) {
		free(req.opts.made);
		return fail(cmd, &req, &err);
	}
	mkfs_register(cmd, &req);
	mkfs_warn(cmd, &req, &result);
	if (req.verbosity)
		mkfs_print_summary(&req, &result);
	free(req.opts.made);
	return EXIT_DONE;
}

const struct command cmd_mkfs = {
	.name = "mkfs",
	.args = "DEV...",
	.summary = "Make a filesystem",
	.options = mkfs_options,
	.run = run,
};
