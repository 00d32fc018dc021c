// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "cmd/mount_options.h"
#include "cmd/space_cache/space_cache.h"

static const char *const kinds[] = { "none", "v1", "v2" };

static void print_unchanged(const struct space_cache_request *req, const struct btrkit_space_change *c)
{
	if (req->clear)
		printf("there is no %s cache to clear\n", kinds[req->kind]);
	else if (c->from == BTRKIT_SPACE_CACHE_NONE)
		printf("there is no cache: nothing to do\n");
	else
		printf("%s is in use%s: nothing to do\n", kinds[c->from],
		       c->was_valid ? " and valid" : ", and Linux rebuilds it at the next mount");
}

static void print_changes(const struct space_cache_request *req, const struct btrkit_space_change *c, uint32_t nodesize)
{
	const char *removed = req->dry_run ? "to be removed" : "removed", *made = req->dry_run ? "to be made" : "made";

	if (c->v1_headers || c->v1_files)
		printf("v1 cache:\t\t%" PRIu64 " headers, %" PRIu64 " files of %" PRIu64 " bytes %s\n", c->v1_headers,
		       c->v1_files, c->v1_bytes, removed);
	if (c->v2_removed_blocks)
		printf("free space tree:\t%" PRIu64 " blocks of %" PRIu32 " bytes %s\n", c->v2_removed_blocks,
		       nodesize, removed);
	if (c->v2_groups)
		printf("free space tree:\t%" PRIu64 " blocks of %" PRIu32 " bytes %s: block groups %" PRIu64
		       ", %" PRIu64 " of them in bitmaps, free ranges %" PRIu64 "\n",
		       c->v2_blocks, nodesize, made, c->v2_groups, c->v2_bitmap_groups, c->v2_ranges);
	if (c->cache_generation == UINT64_MAX)
		printf("cache generation:\tnone: Linux builds v1 at the next mount\n");
	else
		printf("cache generation:\t%" PRIu64 "\n", c->cache_generation);
	printf("in use before:\t\t%s%s\n", kinds[c->from], c->was_valid ? "" : ", not valid");
}

static void print_work(const struct space_cache_request *req, const struct btrkit_space_change *c)
{
	const bool fits = c->needed_bytes <= c->available_bytes;

	if (!req->dry_run || fits)
		printf("%s\t%" PRIu64 " bytes in %" PRIu64 " commits\n",
		       req->dry_run ? "to be written:\t" : "written:\t", c->bytes_written, c->commits);
	if (!req->dry_run)
		return;
	printf("space:\t\t\tup to %" PRIu64 " bytes for tree blocks needed, %" PRIu64 " free\n", c->needed_bytes,
	       c->available_bytes);
	printf("time:\t\t\tabout %.1f seconds\n", (double)c->estimated_ns / 1e9);
	if (!fits)
		printf("there is not enough space\n");
}

/* A cache that was cleared is made again by Linux, whatever the options are, but v2 only if one asks for it. */
static void print_mount_options(const struct command *cmd, const struct space_cache_request *req,
				const struct btrkit_fs_info *info)
{
	const char *now = req->dry_run ? "then" : "now";

	if (req->clear && req->kind == BTRKIT_SPACE_CACHE_V1)
		return;
	if (!req->clear && req->kind == BTRKIT_SPACE_CACHE_V2)
		printf("mount options:\t\tspace_cache=v1 and nospace_cache %s stop the mount\n", now);
	else
		printf("mount options:\t\tspace_cache=v2 %s makes the free space tree again\n", now);
	cmd_warn_of_mount_options(cmd, info, &req->devices,
				  req->clear ? BTRKIT_SPACE_CACHE_NONE : req->kind);
}

static int change(const struct space_cache_request *req, struct btrkit_fs *fs, struct btrkit_space_change *ret,
		  struct btrkit_error *err)
{
	struct btrkit_space_change_options opts = BTRKIT_SPACE_CHANGE_OPTIONS_INIT;
	struct cmd_progress p;
	int r;

	cmd_progress_begin(&p, req->clear ? "clearing" : "converting");
	opts.progress = cmd_progress;
	opts.progress_ctx = &p;
	if (req->dry_run)
		opts.flags |= BTRKIT_SPACE_DRY_RUN;
	r = req->clear ? btrkit_space_clear(fs, req->kind, &opts, ret, err) :
			 btrkit_space_convert(fs, req->kind, &opts, ret, err);
	cmd_progress_end(&p);
	return r;
}

int space_cache_change(const struct command *cmd, const struct space_cache_request *req)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_change done;
	struct btrkit_fs_info info;
	struct btrkit_fs *fs;
	int ret;

	fs = cmd_open_write(cmd, req->devices.at, req->devices.n, !req->devices.noscan,
			    (req->dry_run ? 0 : BTRKIT_OPEN_WRITE) |
				    (req->devices.degraded ? BTRKIT_OPEN_DEGRADED : 0),
			    req->undo);
	if (!fs)
		return EXIT_FAILED;
	ret = change(req, fs, &done, &err);
	btrkit_fs_get_info(fs, &info);
	btrkit_fs_close(fs);
	if (cmd_was_interrupted(ret))
		err = (struct btrkit_error){ .code = BTRKIT_SYSTEM, .err = ret,
					     .message = "interrupted; the filesystem is whole" };
	if (ret)
		return cmd_fail(cmd, req->devices.at[0], &err);
	if (!done.changed) {
		print_unchanged(req, &done);
		return EXIT_DONE;
	}
	print_changes(req, &done, info.nodesize);
	print_work(req, &done);
	print_mount_options(cmd, req, &info);
	return EXIT_DONE;
}
