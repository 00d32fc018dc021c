// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <getopt.h>

#include "cmd/cmd.h"

#define MIRRORS 3

enum { OPT_BYTENR = 256, OPT_FORMAT, OPT_HIDE_NAMES };

static const struct cmd_option options[] = {
	{ 'a', "all", NULL, "print every copy that the device is large enough for" },
	{ 'f', "full", NULL, "also print the system chunk array and the backup roots" },
	{ 's', "super", "N", "print copy N: 0, 1 or 2; any other number is a byte offset" },
	{ 'i', "mirror", "N", "the same, but only 0, 1 and 2 are accepted" },
	{ OPT_BYTENR, "bytenr", "OFFSET", "print the superblock at this byte offset" },
	{ 'F', "force", NULL, "print the superblock even if the magic is missing" },
	{ OPT_HIDE_NAMES, "hide-names", NULL, "print HIDDEN in place of the label" },
	{ OPT_FORMAT, "format", "text|json", "output format: text (the default) or JSON Lines" },
	{ 0 },
};

struct request {
	bool all;
	uint64_t offset;
	unsigned flags;
	enum btrkit_format format;
};

static int dump_one(struct btrkit_io *io, uint64_t offset, struct request *req, struct cmd_output *out,
		    struct btrkit_error *err)
{
	int ret = btrkit_dump_super(io, offset, req->flags, req->format, cmd_write, out, err);

	/* An inconsistent superblock was printed nevertheless. */
	if (!ret || ret == -EUCLEAN)
		req->flags |= BTRKIT_DUMP_SUPER_MORE;
	return ret;
}

static int dump(struct btrkit_io *io, struct request *req, struct cmd_output *out, struct btrkit_error *err)
{
	int ret = 0;

	if (!req->all)
		return dump_one(io, req->offset, req, out, err);
	/*
	 * Print the other copies even if one fails, since they are needed most in that case. The first failure is
	 * reported.
	 */
	for (unsigned i = 0; i < MIRRORS && !out->error; i++) {
		int r = !i || btrkit_super_offset(i) < io->size ?
			dump_one(io, btrkit_super_offset(i), req, out, ret ? NULL : err) :
			0;

		/* Zoned devices have the other copies elsewhere, if at all. */
		if (r != -ENOENT || !i)
			ret = ret ? ret : r;
	}
	return ret;
}

static int dump_device(const struct command *cmd, const char *device, struct request *req)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct cmd_output out = { 0 };
	struct btrkit_io *io;
	int status;

	if (btrkit_io_open(device, BTRKIT_IO_READ, &io, &err))
		return cmd_fail(cmd, device, &err);
	status = cmd_end(cmd, device, &out, dump(io, req, &out, &err), &err);
	btrkit_io_close(io);
	return status;
}

static void choose_mirror(const struct command *cmd, struct request *req, int c)
{
	uint64_t n = cmd_number(cmd, c == 's' ? "--super" : "--mirror", optarg, false);

	if (c == 'i' && n >= MIRRORS)
		cmd_usage_error(cmd, "--mirror: must be 0, 1 or 2");
	req->offset = n < MIRRORS ? btrkit_super_offset((unsigned)n) : n;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct request req = { .offset = btrkit_super_offset(0) };
	int c, status = EXIT_DONE;

	while ((c = cmd_next_option(cmd, argc, argv)) != -1) {
		switch (c) {
		case 'a':
			req.all = true;
			break;
		case 'f':
			req.flags |= BTRKIT_DUMP_SUPER_FULL;
			break;
		case 'F':
			req.flags |= BTRKIT_DUMP_SUPER_FORCE;
			break;
		case OPT_HIDE_NAMES:
			req.flags |= BTRKIT_DUMP_SUPER_HIDE_NAMES;
			break;
		case OPT_FORMAT:
			req.format = cmd_format(cmd, optarg, BTRKIT_FORMAT_JSON);
			break;
		case 's':
			req.all = false;
			choose_mirror(cmd, &req, c);
			break;
		case 'i':
			choose_mirror(cmd, &req, c);
			break;
		case OPT_BYTENR:
			req.all = false;
			req.offset = cmd_number(cmd, "--bytenr", optarg, true);
			break;
		}
	}
	cmd_check_args(cmd, argc, 1, -1);
	for (int i = optind; i < argc && status == EXIT_DONE; i++)
		status = dump_device(cmd, argv[i], &req);
	return status;
}

const struct command cmd_dump_super = {
	.name = "dump-super",
	.args = "DEV...",
	.summary = "Print superblocks as text or JSON",
	.options = options,
	.run = run,
};
