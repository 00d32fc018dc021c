// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/print/mkfs.h"
#include "cmd/mkfs/mkfs.h"

/* Sets an error of this file in the form of the library's. @return a negative errno */
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

/* Sets the device number in the error if @ret is one. */
static int of_device(size_t i, int ret, struct btrkit_error *err)
{
	if (ret) {
		err->places |= BTRKIT_AT_DEVID;
		err->devid = i + 1;
	}
	return ret;
}

/* Checks the device. Nothing is written until this has returned 0. */
static int guard(const struct mkfs_request *req, const char *device, struct btrkit_io *io, struct btrkit_error *err)
{
	char text[64];
	int ret;

	if (mkfs_queue_value(device, "zoned", text, sizeof(text)) && !strcmp(text, "host-managed"))
		return refuse(err, BTRKIT_UNSUPPORTED, EOPNOTSUPP, "not supported: a %s zoned device", text);
	if (req->force)
		return 0;
	ret = btrkit_io_signature(io, text, sizeof(text), err);
	return ret > 0 ? refuse(err, BTRKIT_BUSY, EBUSY, "contains %s: use -f to overwrite it", text) : ret;
}

/* Opens and checks device number @i; errors include the number. */
static int open_device(const struct mkfs_request *req, size_t i, struct btrkit_io **ios, struct btrkit_error *err)
{
	int ret = cmd_open_device(req->devices, i, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &ios[i], err);

	if (!ret)
		ret = guard(req, req->devices[i], ios[i], err);
	return of_device(i, ret, err);
}

/* Refuses a UUID that is in use. With one device this is allowed: Linux then mounts only one of them, as documented. */
static int guard_uuid(const struct mkfs_request *req, struct btrkit_io *const *ios, struct btrkit_error *err)
{
	char name[64];
	int ret;

	if (!req->opts.fsid || req->num_devices == 1)
		return 0;
	ret = btrkit_io_find_fsid(req->opts.fsid, ios, req->num_devices, name, sizeof(name), err);
	return ret > 0 ? refuse(err, BTRKIT_BUSY, EBUSY, "the filesystem on %s has that UUID", name) : ret;
}

static int make_on(const struct command *cmd, struct mkfs_request *req, struct btrkit_io **ios,
		   struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct mkfs_watch watch;
	int ret = 0;

	for (size_t i = 0; !ret && i < req->num_devices; i++)
		ret = open_device(req, i, ios, err);
	if (!ret)
		ret = guard_uuid(req, ios, err);
	for (size_t i = 0; !ret && i < req->num_devices; i++)
		ret = of_device(i, mkfs_enlarge_image(req, ios[i], err), err);
	if (!ret)
		ret = cmd_keep_undo(req->undo, ios, req->num_devices, err);
	if (ret)
		return ret;
	mkfs_watch_begin(&watch, cmd, req);
	ret = btrkit_mkfs(ios, req->num_devices, &req->opts, result, err);
	mkfs_watch_end(&watch);
	if (cmd_was_interrupted(ret))
		refuse(err, BTRKIT_SYSTEM, EINTR, "interrupted: there is no filesystem on %s now",
		       req->num_devices > 1 ? "them" : "it");
	return ret;
}

/* Creates missing image files that are to be filled. */
static int create_images(const struct mkfs_request *req, bool *created, struct btrkit_error *err)
{
	for (size_t i = 0; i < req->num_devices; i++) {
		const int ret = mkfs_create_image(req, req->devices[i], &created[i]);

		if (ret) {
			refuse(err, BTRKIT_SYSTEM, -ret, "cannot create the image file: %s", strerror(-ret));
			return of_device(i, ret, err);
		}
	}
	return 0;
}

static int make(const struct command *cmd, struct mkfs_request *req, struct btrkit_mkfs_result *result,
		struct btrkit_error *err)
{
	struct btrkit_io **ios = calloc(req->num_devices, sizeof(struct btrkit_io *));
	bool *created = calloc(req->num_devices, sizeof(*created));
	int ret;

	if (!ios || !created) {
		free(ios);
		free(created);
		return cmd_no_memory(err);
	}
	ret = create_images(req, created, err);
	if (!ret)
		ret = make_on(cmd, req, ios, result, err);
	for (size_t i = 0; i < req->num_devices; i++) {
		btrkit_io_close(ios[i]);
		if (ret && created[i])
			unlink(req->devices[i]);
	}
	if (!ret && req->keep_size) {
		ret = mkfs_restore_size(req);
		if (ret)
			refuse(err, BTRKIT_SYSTEM, -ret, "cannot restore the size of the file: %s", strerror(-ret));
	}
	free(ios);
	free(created);
	return ret;
}

/* @return the exit status */
static int print_json(const struct command *cmd, const struct mkfs_request *req, const struct btrkit_mkfs_result *r,
		      size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	int ret = print_mkfs_result(&req->opts, r, req->devices, n, cmd_write, &out, &err);

	return cmd_end(cmd, NULL, &out, ret, &err);
}

/* Reports a failure, prefixed with the device that failed. */
static int fail(const struct command *cmd, const struct mkfs_request *req, struct btrkit_error *err)
{
	const char *device = req->num_devices == 1 ? req->devices[0] : NULL;

	if (err->places & BTRKIT_AT_DEVID && err->devid && err->devid <= req->num_devices) {
		device = req->devices[err->devid - 1];
		err->places &= ~(unsigned)BTRKIT_AT_DEVID;
	}
	return cmd_fail(cmd, device, err);
}

/* Returns the exit status of a filesystem that is complete. */
static int worse(int status, const struct btrkit_mkfs_result *r)
{
	return status == EXIT_DONE && r->changed ? EXIT_FAILED : status;
}

/* @ctx: the command, as there need not be a device */
static void say_warning(void *ctx, const char *what)
{
	const struct command *const *cmd = ctx;

	cmd_say("btrkit %s: %s", (*cmd)->name, what);
}

/* Creates nothing: devices, if given, are only counted. @return the exit status */
static int size_only(const struct command *cmd, struct mkfs_request *req)
{
	const size_t n = req->num_devices ? req->num_devices : 1;
	struct btrkit_io **ios = calloc(n, sizeof(struct btrkit_io *));
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_result result;
	int ret = ios ? 0 : cmd_no_memory(&err);

	req->opts.warning = say_warning;
	req->opts.progress_ctx = &cmd;
	for (size_t i = 0; !ret && i < n; i++)
		ret = btrkit_io_memory(1, &ios[i], &err);
	if (!ret)
		ret = btrkit_mkfs(ios, n, &req->opts, &result, &err);
	for (size_t i = 0; ios && i < n; i++)
		btrkit_io_close(ios[i]);
	free(ios);
	if (ret)
		return fail(cmd, req, &err);
	if (req->json)
		return worse(print_json(cmd, req, &result, 0), &result);
	printf("%" PRIu64 "\n", result.total_bytes);
	return worse(EXIT_DONE, &result);
}

/* @return the exit status */
static int make_and_tell(const struct command *cmd, struct mkfs_request *req)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_result result;
	int status = EXIT_DONE, ret;

	req->opts.made = calloc(req->num_devices, sizeof(*req->opts.made));
	ret = req->opts.made ? make(cmd, req, &result, &err) : cmd_no_memory(&err);
	if (ret) {
		status = fail(cmd, req, &err);
	} else {
		mkfs_register(cmd, req);
		mkfs_warn(cmd, req, &result);
		if (req->verbosity && req->json)
			status = print_json(cmd, req, &result, req->num_devices);
		else if (req->verbosity)
			mkfs_print_summary(req, &result);
		status = worse(status, &result);
	}
	free(req->opts.made);
	return status;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct mkfs_request req;
	int status;

	mkfs_parse(cmd, argc, argv, &req);
	status = req.opts.flags & BTRKIT_MKFS_DRY ? size_only(cmd, &req) : make_and_tell(cmd, &req);
	mkfs_release_source(&req);
	return status;
}

const struct command cmd_mkfs = {
	.name = "mkfs",
	.args = "DEV...",
	.summary = "Make a filesystem",
	.options = mkfs_options,
	.run = run,
	.own_ids = MKFS_OWN_OPTIONS,
};
