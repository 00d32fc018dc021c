// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mkfs.h"

#define GROUP_DATA 0x1u
#define GROUP_SYSTEM 0x2u
#define GROUP_METADATA 0x4u

/*
 * A value that sysfs has about the block device, or the disk that it is a part of. @return false if there is none: it
 * is a file
 */
static bool queue_value(const char *device, const char *name, char *to, size_t size)
{
	const char *mark = strrchr(device, '?');
	char path[512];
	struct stat st;
	FILE *f;
	bool found;

	if (stat(device, &st)) {
		/* What follows the question mark is for btrkit_io_open(). */
		snprintf(path, sizeof(path), "%.*s", mark ? (int)(mark - device) : 0, device);
		if (!mark || stat(path, &st))
			return false;
	}
	if (!S_ISBLK(st.st_mode))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/%s", major(st.st_rdev), minor(st.st_rdev), name);
	f = fopen(path, "r");
	if (!f) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../queue/%s", major(st.st_rdev), minor(st.st_rdev),
			 name);
		f = fopen(path, "r");
	}
	if (!f)
		return false;
	found = fgets(to, (int)size, f);
	fclose(f);
	if (found)
		to[strcspn(to, "\n")] = '\0';
	return found;
}

/* As btrfs-progs prints sizes: what is below 1/1024 of the unit is cut off, the rest rounded. */
static const char *pretty(uint64_t size, char to[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t last = size;
	unsigned unit = 0;

	for (; size >= 1024; size /= 1024, unit++)
		last = size;
	snprintf(to, 32, "%.2f%s", (double)((float)last / (unit ? 1024 : 1)), units[unit]);
	return to;
}

static void print_uuid(const char *name, const uint8_t *uuid)
{
	printf("%-20s", name);
	for (unsigned i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	printf("\n");
}

static void print_groups(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	static const uint64_t types[] = { GROUP_DATA, GROUP_METADATA, GROUP_DATA | GROUP_METADATA, GROUP_SYSTEM };
	static const char *const names[] = { "  Data:", "  Metadata:", "  Data+Metadata:", "  System:" };
	char size[32];

	printf("Block group profiles:\n");
	for (unsigned t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (unsigned i = 0; i < r->num_groups; i++) {
			const struct btrkit_mkfs_group *g = &r->groups[i];
			enum btrkit_profile p = types[t] == GROUP_DATA ? req->opts.data : req->opts.metadata;

			if ((g->type & (GROUP_DATA | GROUP_METADATA | GROUP_SYSTEM)) != types[t])
				continue;
			printf("%-20s%-8s %16s", names[t], p == BTRKIT_DUP ? "DUP" : "single", pretty(g->length, size));
			if (req->verbosity > 1)
				printf("  at %" PRIu64, g->logical);
			printf("\n");
		}
	}
}

static void print_summary(const struct mkfs_request *req, const struct btrkit_mkfs_result *r)
{
	char size[32], rotational[8] = "1";

	printf("btrkit %s\n\n", btrkit_version());
	printf("%-20s%s\n", "Label:", req->opts.label ? req->opts.label : "(null)");
	print_uuid("UUID:", r->fsid);
	if (req->opts.device_uuid || req->verbosity > 1)
		print_uuid("Device UUID:", r->device_uuid);
	printf("%-20s%" PRIu32 "\n", "Node size:", r->nodesize);
	printf("%-20s%" PRIu32 "\t(CPU page size: %ld)\n", "Sector size:", r->sectorsize, sysconf(_SC_PAGESIZE));
	printf("%-20s%s\n", "Filesystem size:", pretty(r->total_bytes, size));
	print_groups(req, r);
	queue_value(req->device, "rotational", rotational, sizeof(rotational));
	printf("%-20s%s\n", "SSD detected:", strcmp(rotational, "0") ? "no" : "yes");
	printf("%-20s%s\n", "Zoned device:", "no");
	printf("%-20s", "Features:");
	mkfs_print_features(r->incompat, r->compat_ro);
	printf("\n%-20s%s\n", "Checksum:", "crc32c");
	printf("%-20s%d\n", "Number of devices:", 1);
	printf("Devices:\n   ID        SIZE  PATH\n%5d  %10s  %s\n\n", 1, pretty(r->total_bytes, size), req->device);
}

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

/* Nothing is written before this has returned 0. */
static int guard(const struct mkfs_request *req, struct btrkit_io *io, struct btrkit_error *err)
{
	char text[64];
	int ret;

	if (queue_value(req->device, "zoned", text, sizeof(text)) && !strcmp(text, "host-managed"))
		return refuse(err, BTRKIT_UNSUPPORTED, EOPNOTSUPP, "not supported: a %s zoned device", text);
	if (req->force)
		return 0;
	ret = btrkit_io_signature(io, text, sizeof(text), err);
	return ret > 0 ? refuse(err, BTRKIT_BUSY, EBUSY, "there is %s on it, which only -f overwrites", text) : ret;
}

static int make(struct mkfs_request *req, struct btrkit_mkfs_result *result, struct btrkit_error *err)
{
	struct cmd_progress p;
	struct btrkit_io *io;
	int ret;

	ret = btrkit_io_open(req->device, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io, err);
	if (ret)
		return ret;
	ret = guard(req, io, err);
	if (!ret)
		ret = cmd_keep_undo(req->undo, &io, err);
	if (!ret) {
		cmd_progress_begin(&p, "discarding");
		p.terminal &= req->verbosity > 0;
		req->opts.progress = cmd_progress;
		req->opts.progress_ctx = &p;
		ret = btrkit_mkfs(io, &req->opts, result, err);
		cmd_progress_end(&p);
	}
	if (cmd_was_interrupted(ret))
		refuse(err, BTRKIT_SYSTEM, EINTR, "interrupted: there is no filesystem on it now");
	btrkit_io_close(io);
	return ret;
}

static int run(const struct command *cmd, int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_mkfs_result result;
	struct mkfs_request req;

	mkfs_parse(cmd, argc, argv, &req);
	if (make(&req, &result, &err))
		return cmd_fail(cmd, req.device, &err);
	mkfs_warn(cmd, &req);
	if (req.verbosity)
		print_summary(&req, &result);
	return EXIT_DONE;
}

const struct command cmd_mkfs = {
	.name = "mkfs",
	.args = "DEV",
	.summary = "Make a filesystem",
	.options = mkfs_options,
	.run = run,
};
