// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A whole filesystem: open it, dump it, list files and free space, and compute space usage by owner and by directory.
 * For the input see device.h.
 */
#include "lib/print/diff.h"
#include "lib/print/references.h"
#include "lib/print/space.h"
#include "lib/print/subvolumes.h"
#include "lib/print/tree_stats.h"
#include "tests/fuzz/device.h"

#include <stdlib.h>

#include <btrkit/dump.h>
#include <btrkit/inspect.h>
#include <btrkit/error.h>
#include <btrkit/fiemap.h>
#include <btrkit/filesystem.h>
#include <btrkit/io.h>
#include <btrkit/space.h>
#include <btrkit/usage_paths.h>

#define OUTPUT_MAX (64u << 20)
#define ROWS_MAX (1u << 20)

static int count_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)file;
	return ++*(uint64_t *)ctx > ROWS_MAX ? -27 : 0;
}

#define RESOLVED_MAX 64

struct fuzz_resolve {
	uint64_t rows; /* must be first, since the other sinks count there too */
	struct btrkit_fs *fs;
};

static int count_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	(void)rows;
	*(uint64_t *)ctx += n;
	return *(uint64_t *)ctx > ROWS_MAX ? -27 : 0;
}

static void dump(struct btrkit_fs *fs, unsigned flags)
{
	struct btrkit_dump_options opts = BTRKIT_DUMP_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t room = OUTPUT_MAX;

	opts.flags = flags;
	fuzz_ended(btrkit_dump_tree(fs, &opts, fuzz_write, &room, &err), &err);
}

/* A btrkit_lost_fn. */
static int go_on(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	if (!what->message[0])
		abort();
	return 0;
}

static int go_on_of(void *ctx, unsigned side, const struct btrkit_error *what)
{
	if (side > 1)
		abort();
	return go_on(ctx, what);
}

/* Dumps it as JSON, complete or with some members; and everything else that reads whole trees. */
static void inspect(struct btrkit_fs *fs)
{
	const struct btrkit_diff_side subvolume = { fs, 5 }, other = { fs, 256 }, all = { fs, 0 };
	struct btrkit_subvolumes_options deleted = BTRKIT_SUBVOLUMES_OPTIONS_INIT;
	struct btrkit_dump_options opts = BTRKIT_DUMP_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t room = OUTPUT_MAX;
	bool differ;

	deleted.flags = BTRKIT_SUBVOLUMES_DELETED;

	opts.format = BTRKIT_FORMAT_JSON;
	fuzz_ended(btrkit_dump_tree(fs, &opts, fuzz_write, &room, &err), &err);
	opts.fields = "kind,key.objectid,item.entries.name,message";
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_dump_tree(fs, &opts, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_tree_stats(fs, NULL, 0, BTRKIT_FORMAT_JSON, go_on, NULL, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_subvolumes(fs, &deleted, BTRKIT_FORMAT_JSON, NULL, NULL, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_diff(&subvolume, &other, 0, BTRKIT_FORMAT_JSON, go_on_of, NULL, fuzz_write, &room, &differ,
			      &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_diff(&all, &all, 0, BTRKIT_FORMAT_TEXT, go_on_of, NULL, fuzz_write, &room, &differ, &err),
		   &err);
}

static int count_problem(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	(void)what;
	return count_file(ctx, file);
}

static void list(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t rows = 0;
	const struct btrkit_fiemap_sink sink = { count_file, count_rows, &rows };

	fuzz_ended(btrkit_fiemap_all(fs, &sink, NULL, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_fiemap_path(fs, 5, "dir/file", &sink, NULL, &err), &err);
}

static int count_owners(void *ctx, const struct btrkit_reference *refs, size_t n)
{
	(void)refs;
	*(uint64_t *)ctx += n;
	return *(uint64_t *)ctx > ROWS_MAX ? -27 : 0;
}

/* Resolves the references of each row, and its location, to paths. */
static int resolve_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct fuzz_resolve *r = ctx;
	uint64_t room = OUTPUT_MAX;

	for (size_t i = 0; i < n; i++, r->rows++)
		if (rows[i].physical && r->rows < RESOLVED_MAX)
			fuzz_ended(print_logical_references(r->fs, rows[i].physical, 0, BTRKIT_FORMAT_JSON, go_on,
							    NULL, fuzz_write, &room, &err), &err);
	return r->rows > ROWS_MAX ? -27 : 0;
}

static void resolve(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct fuzz_resolve r = { 0, fs };
	const struct btrkit_fiemap_sink sink = { count_file, resolve_rows, &r, count_owners, count_problem };

	fuzz_ended(btrkit_fiemap_all(fs, &sink, NULL, &err), &err);
}

static void hold_caches(struct btrkit_fs *fs)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_space_summary sum;
	uint64_t room = OUTPUT_MAX;

	fuzz_ended(print_space_status(fs, BTRKIT_FORMAT_JSON, fuzz_write, &room, &sum, &err), &err);
}

static int pass_over(void *ctx, const struct btrkit_error *what)
{
	/* Whatever is reported must have a message. */
	if (!what->message[0])
		abort();
	++*(uint64_t *)ctx;
	return 0;
}

static void reckon_below(struct btrkit_fs *fs, struct btrkit_usage *u, uint64_t data)
{
	struct btrkit_usage_paths_options opts = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage_paths *p;
	uint64_t told = 0, freed = 0;
	size_t n;
	int ret;

	opts.threads = 1;
	opts.range_memory = 1;
	opts.damage = pass_over;
	opts.damage_ctx = &told;
	ret = btrkit_usage_paths_load(fs, u, &opts, &p, &err);
	fuzz_ended(ret, &err);
	if (ret)
		return;
	n = btrkit_usage_paths_num(p);
	for (size_t i = 0; i < n; i++) {
		struct btrkit_usage_path d, parent;

		btrkit_usage_paths_get(p, i, &d);
		if (d.end <= i || d.end > n)
			abort();
		if (d.parent == SIZE_MAX) {
			freed += d.frees;
			continue;
		}
		btrkit_usage_paths_get(p, d.parent, &parent);
		if (d.parent >= i || d.end > parent.end || d.frees > parent.frees || d.set_shared > parent.set_shared)
			abort();
	}
	if (freed > data)
		abort();
	btrkit_usage_paths_free(p);
}

/* All parts of the result must agree, whatever the filesystem is. */
static void reckon(struct btrkit_fs *fs)
{
	struct btrkit_usage_options opts = BTRKIT_USAGE_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_usage_space sum = { 0 };
	struct btrkit_usage_total total;
	struct btrkit_usage *u;
	uint64_t told = 0;
	int ret;

	opts.threads = 1;
	opts.damage = pass_over;
	opts.damage_ctx = &told;
	ret = btrkit_usage_load(fs, &opts, &u, &err);
	fuzz_ended(ret, &err);
	if (ret)
		return;
	btrkit_usage_get_total(u, &total);
	for (size_t i = 0; i < btrkit_usage_num_sets(u); i++) {
		struct btrkit_usage_set set;

		btrkit_usage_get_set(u, i, &set, NULL, 0);
		sum.data += set.space.data;
		sum.blocks += set.space.blocks;
	}
	if (sum.data + total.unowned.data != total.space.data ||
	    sum.blocks + total.unowned.blocks != total.space.blocks || told != total.damaged)
		abort();
	reckon_below(fs, u, total.space.data);
	btrkit_usage_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = NULL;
	struct fuzz_choices choices;
	struct btrkit_fs_info info;
	struct btrkit_io *io;
	uint8_t *copy = malloc(size + !size);
	int ret;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	io = fuzz_device_open(copy, size, false, &choices);
	if (io) {
		ret = btrkit_fs_open(&io, 1, NULL, &fs, &err);
		fuzz_ended(ret, &err);
		if (ret) {
			btrkit_io_close(io);
		} else {
			btrkit_fs_get_info(fs, &info);
			inspect(fs);
			list(fs);
			resolve(fs);
			dump(fs, BTRKIT_DUMP_CSUM_HEADERS | BTRKIT_DUMP_CSUM_ITEMS);
			dump(fs, BTRKIT_DUMP_DFS | BTRKIT_DUMP_HIDE_NAMES);
			dump(fs, BTRKIT_DUMP_BACKUPS);
			hold_caches(fs);
			reckon(fs);
			btrkit_fs_close(fs);
		}
	}
	free(copy);
	return 0;
}
