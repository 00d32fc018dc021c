// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates and removes chunks, for comparisons with Linux.
 * Usage: chunk-tool DEVICE[,...] STEP...
 *
 * Each step is a transaction of its own, or up to a `commit` in a single one. TYPE (data, metadata, system) creates a
 * chunk, a number removes the chunk at that address.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/commit/txn.h"
#include "lib/space/chunk.h"

#define DEVICES_MAX 16

static int fail(const char *what, const struct btrkit_error *err)
{
	char line[512];

	fprintf(stderr, "chunk-tool: %s: %s\n", what, btrkit_error_format(err, line, sizeof(line)));
	return 1;
}

static uint64_t type_of(const char *name)
{
	return !strcmp(name, "data") ? BG_DATA : !strcmp(name, "metadata") ? BG_METADATA :
	       !strcmp(name, "system")	 ? BG_SYSTEM :
					   0;
}

/* @paths: separated by commas */
static int open_devices(char *paths, struct btrkit_fs **fs, struct btrkit_error *err)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_io *io[DEVICES_MAX];
	size_t n = 0;
	int ret = 0;

	opts.flags = BTRKIT_OPEN_WRITE;
	for (char *path = strtok(paths, ","); !ret && path && n < DEVICES_MAX; path = strtok(NULL, ","))
		ret = btrkit_io_open(path, BTRKIT_IO_WRITE | BTRKIT_IO_EXCLUSIVE, &io[n++], err);
	return ret ? ret : btrkit_fs_open(io, n, &opts, fs, err);
}

static void print(const struct chunk_plan *plan)
{
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64, plan->logical, plan->length, plan->type);
	for (unsigned i = 0; i < plan->num_stripes; i++)
		printf(" %" PRIu64 ":%" PRIu64, plan->stripes[i].devid, plan->stripes[i].physical);
	printf("\n");
}

static int step(struct btrkit_txn *txn, const char *what, struct btrkit_error *err)
{
	const uint64_t type = type_of(what);
	struct space_group *g = type ? NULL : space_group_of(txn->space, strtoull(what, NULL, 10));
	struct chunk_plan plan;
	int ret;

	if (g)
		return chunk_remove(txn->space, g, &txn->super, err);
	if (!type)
		return -1;
	ret = chunk_plan(txn->space, type, &plan, err);
	if (!ret)
		ret = chunk_create(txn->space, &plan, &txn->super, &g, err);
	if (!ret)
		print(&plan);
	return ret;
}

static int run(char **args, int n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_txn *txn = NULL;
	struct btrkit_fs *fs;
	bool together = false;

	if (open_devices(args[0], &fs, &err))
		return fail(args[0], &err);
	for (int i = 1; i < n; i++)
		together |= !strcmp(args[i], "commit");
	for (int i = 1; i < n; i++) {
		const bool commit = !strcmp(args[i], "commit");

		if (!txn && btrkit_txn_start(fs, &txn, &err))
			return fail("start", &err);
		if (!commit && step(txn, args[i], &err))
			return fail(args[i], &err);
		if (together && !commit)
			continue;
		if (btrkit_txn_commit(txn, NULL, &err))
			return fail("commit", &err);
		txn = NULL;
	}
	btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3)
		return run(argv + 1, argc - 1);
	fprintf(stderr, "chunk-tool: bad usage\n");
	return 2;
}
