// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/fold.h"

enum {
	OPT_TAR = 256,
	OPT_FLAGS,
	OPT_NO_OWNER,
	OPT_SUBVOL
};

static const struct cmd_option options[] = {
	{ 'C', "directory", "DIR", "copy to DIR (default: the working directory)" },
	{ OPT_TAR, "tar", "FILE|-", "write an archive instead; - is the standard output" },
	{ OPT_FLAGS, "flags", NULL, "also set inode flags" },
	{ OPT_NO_OWNER, "no-same-owner", NULL, "let files belong to the caller, even if that is root" },
	{ OPT_SUBVOL, "subvol", "ID|PATH", "start each PATH from this subvolume (default: the top level)" },
	CMD_VERBOSE_OPTION,
	CMD_LINKS_OPTION,
	CMD_DEVICE_OPTIONS,
	{ 0 },
};

struct request {
	const struct command *cmd;
	struct cmd_fold fold;
	const char *directory, *tar, *subvol;
	struct cmd_devices devices;
	bool flags, no_owner;
	const char *const *paths;
	size_t num_paths;
	/* State while running. */
	struct cmd_output out; /* for an archive: errors of writing it */
	int fd;
	struct cmd_whole whole; /* the archive, if it is a file */
	struct cmd_progress progress;
};

static int progress(void *ctx, uint64_t names, uint64_t bytes)
{
	struct request *req = ctx;

	if (cmd_progress_stopped())
		return -EINTR;
	if (cmd_progress_due(&req->progress))
		fprintf(stderr, "\r%s: %" PRIu64 " files, %" PRIu64 " MiB", req->progress.what, names, bytes >> 20);
	return 0;
}

static int problem(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	struct request *req = ctx;

	cmd_progress_end(&req->progress);
	cmd_fold_tell(&req->fold, path, len, what);
	return 0;
}

static int write_archive(void *ctx, const void *data, size_t len)
{
	struct request *req = ctx;

	req->out.error = cmd_write_fd(req->fd, data, len);
	return req->out.error;
}

static int verify_device(void *ctx, const struct btrkit_device *device)
{
	return device->name && cmd_is_device(*(const char *const *)ctx, device->name) ? -EBUSY : 0;
}

/* Whether the archive would overwrite one of the devices, given or found. */
static bool overwrites(struct btrkit_fs *fs, const struct request *req)
{
	const char *to = strcmp(req->tar, "-") ? req->tar : "/dev/stdout";
	struct btrkit_error err;

	for (size_t i = 0; i < req->devices.n; i++)
		if (cmd_is_device(to, req->devices.at[i]))
			return true;
	return btrkit_devices(fs, verify_device, &to, &err) == -EBUSY;
}

/* Opens the archive. Devices, such as tapes, and fifos are written directly. @return 0; a negative errno */
static int open_file(struct request *req)
{
	struct stat st;
	int ret;

	if (!stat(req->tar, &st) && !S_ISREG(st.st_mode)) {
		req->fd = open(req->tar, O_WRONLY | O_CLOEXEC);
		return req->fd < 0 ? -errno : 0;
	}
	ret = cmd_whole_begin(&req->whole, req->tar);
	req->fd = req->whole.fd;
	return ret;
}

/* @return 0; <0: failed, and reported */
static int open_archive(struct btrkit_fs *fs, struct request *req)
{
	int ret;

	if (overwrites(fs, req)) {
		cmd_say("btrkit %s: %s: is a device of the filesystem", req->cmd->name, req->tar);
		return -1;
	}
	req->fd = STDOUT_FILENO;
	if (!strcmp(req->tar, "-")) {
		if (isatty(STDOUT_FILENO))
			cmd_usage_error(req->cmd, "--tar -: refusing to write an archive to a terminal");
		return 0;
	}
	ret = open_file(req);
	if (!ret)
		return 0;
	cmd_say("btrkit %s: %s: %s", req->cmd->name, req->tar, strerror(-ret));
	return -1;
}

/* An incomplete archive does not replace an existing file. @return the exit status */
static int close_archive(struct request *req, bool whole, int status)
{
	int ret;

	if (req->fd == STDOUT_FILENO)
		return status;
	if (req->whole.fd >= 0)
		ret = cmd_whole_end(&req->whole, whole);
	else
		ret = close(req->fd) ? -errno : 0;
	if (!ret || !whole)
		return status;
	cmd_say("btrkit %s: %s: %s", req->cmd->name, req->tar, strerror(-ret));
	return EXIT_FAILED;
}

static int extract(struct btrkit_fs *fs, struct request *req, struct btrkit_extract_result *result,
		   struct btrkit_error *err)
{
	const bool owners = !geteuid() && !req->no_owner;
	const struct btrkit_extract_options opts = {
		.flags = (owners ? BTRKIT_EXTRACT_OWNERS : 0) | (req->flags ? BTRKIT_EXTRACT_INODE_FLAGS : 0),
		.problem = problem,
		.problem_ctx = req,
		.left_out = problem,
		.left_out_ctx = req,
		.progress = progress,
		.progress_ctx = req,
	};
	uint64_t root;
	int ret = cmd_find_subvolume(fs, req->subvol, &root, err);

	if (ret)
		return ret;
	cmd_progress_begin(&req->progress, "extracting");
	if (req->tar)
		ret = btrkit_extract_tar(fs, root, req->paths, req->num_paths, write_archive, req, &opts, result, err);
	else
		ret = btrkit_extract(fs, root, req->paths, req->num_paths, req->directory, &opts, result, err);
	cmd_progress_end(&req->progress);
	return ret;
}

static void take_option(struct request *req, int c)
{
	switch (c) {
	case 'C':
		req->directory = optarg;
		break;
	case OPT_TAR:
		req->tar = optarg;
		break;
	case OPT_FLAGS:
		req->flags = true;
		break;
	case OPT_NO_OWNER:
		req->no_owner = true;
		break;
	case 'v':
		req->fold.all = true;
		break;
	case OPT_SUBVOL:
		req->subvol = cmd_path(req->cmd, optarg);
		break;
	default:
		cmd_devices_option(&req->devices, c);
		break;
	}
}

/* @return the exit status */
static int work(struct btrkit_fs *fs, struct request *req)
{
	struct btrkit_extract_result result = { 0 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	if (req->tar && open_archive(fs, req))
		return EXIT_FAILED;
	ret = extract(fs, req, &result, &err);
	cmd_fold_end(&req->fold);
	if (!req->tar && !ret)
		return result.problems ? EXIT_FAILED : EXIT_DONE;
	if (!req->tar)
		return cmd_end(req->cmd, result.target_failed ? req->directory : req->devices.at[0], &req->out, ret,
			       &err);
	if (req->out.error && req->fd != STDOUT_FILENO) {
		cmd_say("btrkit %s: %s: %s", req->cmd->name, req->tar, strerror(-req->out.error));
		return close_archive(req, false, EXIT_FAILED);
	}
	if (ret)
		return close_archive(req, false, cmd_end(req->cmd, req->devices.at[0], &req->out, ret, &err));
	/* If all names were mistaken, no archive is created. */
	return close_archive(req, result.names || !result.problems, result.problems ? EXIT_FAILED : EXIT_DONE);
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { .cmd = cmd, .whole.fd = -1 };
	int c, status = EXIT_FAILED;
	struct btrkit_fs *fs;

	if (cmd_devices_begin(cmd, argc, &req.devices))
		return EXIT_FAILED;
	while ((c = cmd_next_option(cmd, argc, argv)) != -1)
		take_option(&req, c);
	cmd_check_args(cmd, argc, 1, -1);
	cmd_check_paths(cmd, argc, argv, optind + 1);
	if (req.directory && req.tar)
		cmd_usage_error(cmd, "--directory and --tar cannot be combined");
	if (req.flags && req.tar)
		cmd_usage_error(cmd, "--flags requires a directory: archives always have them");
	if (req.no_owner && req.tar)
		cmd_usage_error(cmd, "--no-same-owner requires a directory: archives always have owners");
	if (!req.directory)
		req.directory = ".";
	req.devices.at[0] = argv[optind];
	req.fold.cmd = cmd;
	req.fold.advise = true;
	req.fold.device = req.devices.at[0];
	req.paths = (const char *const *)argv + optind + 1;
	req.num_paths = (size_t)(argc - optind - 1);
	fs = cmd_files_open(cmd, &req.devices);
	if (fs)
		status = work(fs, &req);
	btrkit_fs_close(fs);
	cmd_devices_end(&req.devices);
	return status;
}

const struct command cmd_extract = {
	.name = "extract",
	.args = "DEV [PATH]...",
	.summary = "Copy files and directories to a directory or into an archive",
	.options = options,
	.run = run,
};
