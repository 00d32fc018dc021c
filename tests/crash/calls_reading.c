// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that read, inside or outside of a transaction. */
#include "lib/print/diff.h"
#include "lib/print/fiemap.h"
#include "lib/print/layout.h"
#include "lib/print/ls.h"
#include "lib/print/references.h"
#include "lib/print/stat.h"
#include "lib/print/subvolumes.h"
#include "lib/print/tree_stats.h"
#include "tests/crash/calls.h"

#include <errno.h>
#include <string.h>

static int see_file(void *ctx, const struct btrkit_fiemap_file *file)
{
	(void)file;
	return calls_go_on(ctx);
}

static int see_rows(void *ctx, const struct btrkit_extent *rows, size_t n)
{
	(void)rows;
	(void)n;
	return calls_go_on(ctx);
}

static int see_owners(void *ctx, const struct btrkit_reference *refs, size_t n)
{
	(void)refs;
	(void)n;
	return calls_go_on(ctx);
}

static int see_reference(void *ctx, const struct btrkit_reference *ref)
{
	(void)ref;
	return calls_go_on(ctx);
}

static int see_path(void *ctx, const char *path, size_t len)
{
	(void)path;
	(void)len;
	return calls_go_on(ctx);
}

static int see_entry(void *ctx, const struct btrkit_dir_entry *entry)
{
	(void)entry;
	return calls_go_on(ctx);
}

static int see_xattr(void *ctx, const struct btrkit_xattr *x)
{
	(void)x;
	return calls_go_on(ctx);
}

static int see_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	(void)extent;
	return calls_go_on(ctx);
}

static int see_device(void *ctx, const struct btrkit_device *device)
{
	(void)device;
	return calls_go_on(ctx);
}

static int see_chunk(void *ctx, const struct btrkit_chunk *chunk)
{
	(void)chunk;
	return calls_go_on(ctx);
}

static int see_copy(void *ctx, const struct btrkit_copy *copy)
{
	(void)copy;
	return calls_go_on(ctx);
}

static int see_range(void *ctx, const struct btrkit_used_range *range)
{
	(void)range;
	return calls_go_on(ctx);
}

static int see_problem(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what)
{
	(void)file;
	(void)what;
	return calls_go_on(ctx);
}

static int see_lost(void *ctx, const struct btrkit_fiemap_file *file, uint64_t logical, uint64_t length)
{
	(void)file;
	(void)logical;
	return length ? calls_go_on(ctx) : 1;
}

static struct btrkit_fiemap_sink some_sink(struct caller *c)
{
	return (struct btrkit_fiemap_sink){
		.file = see_file,
		.extents = see_rows,
		.ctx = c,
		.owners = calls_pick(c, 2) ? see_owners : NULL,
		.problem = calls_pick(c, 2) ? see_problem : NULL,
		.lost = calls_pick(c, 2) ? see_lost : NULL,
	};
}

static int fiemap_path(struct caller *c)
{
	const struct btrkit_fiemap_sink sink = some_sink(c);

	return btrkit_fiemap_path(c->fs, calls_root(c), calls_path(c), &sink, NULL, &c->err);
}

static int fiemap_all(struct caller *c)
{
	const struct btrkit_fiemap_sink sink = some_sink(c);
	struct btrkit_fiemap_stats stats = { 0 };

	return btrkit_fiemap_all(c->fs, &sink, &stats, &c->err);
}

static int fiemap_printed(struct caller *c)
{
	struct fiemap_printer *p = NULL;
	int ret, last;

	ret = fiemap_printer_create(c->fs, calls_format(c), calls_flags(c, 1), calls_write, c, &p, &c->err);
	if (ret)
		return ret;
	ret = btrkit_fiemap_all(c->fs, fiemap_printer_sink(p), NULL, &c->err);
	/* Errors are reported only by the return value. */
	last = fiemap_printer_finish(p, !ret);
	return ret || !last || c->ended ? ret : last == -ENOMEM ? 0 : last;
}

static int extent_references(struct caller *c)
{
	return btrkit_extent_references(c->fs, calls_address(c), see_reference, c, &c->err);
}

static int logical_find(struct caller *c)
{
	struct btrkit_allocation found;

	return btrkit_logical_find(c->fs, calls_address(c), &found, &c->err);
}

static int logical_references(struct caller *c)
{
	return btrkit_logical_references(c->fs, calls_address(c), calls_flags(c, 3), see_reference, c, &c->err);
}

static int logical_references_print(struct caller *c)
{
	return print_logical_references(c->fs, calls_address(c), calls_flags(c, 3), calls_format(c), NULL, NULL,
					calls_write, c, &c->err);
}

static int inode_paths_print(struct caller *c)
{
	return print_inode_paths(c->fs, calls_root(c), calls_inode(c), calls_format(c), NULL, NULL, calls_write, c,
				 &c->err);
}

static int subvolume_find(struct caller *c)
{
	uint64_t id;

	return btrkit_subvolume_find(c->fs, calls_path(c), &id, &c->err);
}

static int subvolume_next(struct caller *c)
{
	struct btrkit_subvolume s;

	return btrkit_subvolume_next(c->fs, calls_root(c), &s, &c->err);
}

static int subvolume_path(struct caller *c)
{
	return btrkit_subvolume_path(c->fs, calls_root(c), see_path, c, &c->err);
}

static int subvolumes_deletable(struct caller *c)
{
	struct btrkit_subvolume_deletion all[3] = { { .id = calls_root(c) }, { .id = calls_root(c) },
						    { .id = calls_root(c) } };

	return btrkit_subvolumes_deletable(c->fs, all, calls_pick(c, 4), &c->err);
}

static int inode_find(struct caller *c)
{
	struct btrkit_inode i;

	return btrkit_inode_find(c->fs, calls_root(c), calls_path(c), &i, &c->err);
}

static int inode_get(struct caller *c)
{
	struct btrkit_inode i;

	return btrkit_inode_get(c->fs, calls_root(c), calls_inode(c), &i, &c->err);
}

static int inode_paths(struct caller *c)
{
	return btrkit_inode_paths(c->fs, calls_root(c), calls_inode(c), see_path, c, &c->err);
}

static int inode_entries(struct caller *c)
{
	return btrkit_inode_entries(c->fs, calls_root(c), calls_inode(c), see_entry, c, &c->err);
}

static int inode_xattrs(struct caller *c)
{
	return btrkit_inode_xattrs(c->fs, calls_root(c), calls_inode(c), see_xattr, c, &c->err);
}

static int inode_extents(struct caller *c)
{
	return btrkit_inode_extents(c->fs, calls_root(c), calls_inode(c), see_extent, c, &c->err);
}

static int file_open(struct caller *c)
{
	struct btrkit_file *f = NULL;
	const int ret = btrkit_file_open(c->fs, calls_root(c), calls_inode(c), &f, &c->err);

	if (!ret) {
		btrkit_file_close(c->file);
		c->file = f;
	}
	return ret;
}

static int file_read(struct caller *c)
{
	static _Thread_local uint8_t to[CALLS_BYTES];
	size_t got;

	return btrkit_file_read(c->file, calls_offset(c), to, calls_pick(c, sizeof(to)), &got, &c->err);
}

static int file_next_data(struct caller *c)
{
	uint64_t start, length;

	return btrkit_file_next_data(c->file, calls_offset(c), &start, &length, &c->err);
}

/* The range is empty only by mistake. */
static int file_lost(struct caller *c)
{
	uint64_t start, length;

	return !btrkit_file_lost(c->file, &start, &length) && !length;
}

static int file_close(struct caller *c)
{
	c->file = btrkit_file_close(c->file);
	return c->file != NULL;
}

static int ls_print(struct caller *c)
{
	const struct print_ls_options opts = { .flags = calls_flags(c, 15),
						.format = calls_format(c),
						.problem = calls_pick(c, 2) ? calls_problem : NULL,
						.problem_ctx = c };
	const char *const paths[] = { calls_path(c), calls_path(c) };

	return print_ls(c->fs, calls_root(c), paths, calls_pick(c, 3), calls_pick(c, 4) ? &opts : NULL,
			       calls_write, c, &c->err);
}

static int stat_print(struct caller *c)
{
	const struct print_stat_options opts = { .flags = calls_flags(c, 0),
						  .format = calls_format(c),
						  .problem = calls_pick(c, 2) ? calls_problem : NULL,
						  .problem_ctx = c };
	const char *const paths[] = { calls_path(c), calls_path(c) };

	return print_stat(c->fs, calls_root(c), paths, calls_pick(c, 3), calls_pick(c, 4) ? &opts : NULL,
				 calls_write, c, &c->err);
}

static int subvolumes_print(struct caller *c)
{
	const struct btrkit_subvolumes_order order = { (enum btrkit_subvolumes_key)calls_pick(c, 5), calls_pick(c, 2) };
	struct btrkit_subvolumes_options opts = BTRKIT_SUBVOLUMES_OPTIONS_INIT;

	opts.flags = calls_flags(c, 15);
	opts.order = &order;
	opts.num_order = calls_pick(c, 2);
	return print_subvolumes(c->fs, &opts, calls_format(c), NULL, NULL, calls_write, c, &c->err);
}

static int tree_stats_print(struct caller *c)
{
	const uint64_t trees[] = { calls_root(c), calls_pick(c, 12) };

	return print_tree_stats(c->fs, trees, calls_pick(c, 3), calls_format(c), calls_damage, c, calls_write,
				c, &c->err);
}

static int see_side(void *ctx, unsigned side, const struct btrkit_error *what)
{
	return side < 2 ? calls_damage(ctx, what) : 1;
}

static int diff_print(struct caller *c)
{
	const struct btrkit_diff_side a = { c->fs, calls_pick(c, 4) ? calls_root(c) : 0 };
	const struct btrkit_diff_side b = { c->fs, calls_pick(c, 4) ? calls_root(c) : 0 };
	bool differ;

	return print_diff(&a, &b, calls_flags(c, 3), calls_format(c), see_side, c, calls_write, c, &differ, &c->err);
}

static int dump_tree(struct caller *c)
{
	static const char *const fields[] = { NULL, "key", "key.objectid,name", "none", ",", "" };
	const uint8_t types[] = { (uint8_t)calls_pick(c, 256), 1 };
	const struct btrkit_dump_select select = { .flags = calls_flags(c, 31),
						   .types = types,
						   .num_types = calls_pick(c, 3),
						   .inode = calls_inode(c),
						   .path = calls_pick(c, 2) ? calls_path(c) : NULL };
	const uint64_t trees[] = { calls_root(c), calls_pick(c, 12) }, blocks[] = { calls_address(c), 30408704 };
	const struct btrkit_dump_options opts = { .flags = calls_flags(c, 0x3ff),
						  .trees = trees,
						  .num_trees = calls_pick(c, 3),
						  .blocks = blocks,
						  .num_blocks = calls_one_in(c, 4) ? calls_pick(c, 3) : 0,
						  .select = calls_one_in(c, 3) ? &select : NULL,
						  .format = calls_format(c),
						  .fields = fields[calls_one_in(c, 3) ? calls_pick(c, 6) : 0] };

	return btrkit_dump_tree(c->fs, calls_pick(c, 5) ? &opts : NULL, calls_write, c, &c->err);
}

static int dump_raw(struct caller *c)
{
	return btrkit_dump_raw(c->fs, calls_address(c), calls_pick(c, 4), calls_format(c), calls_write, c, &c->err);
}

static int dump_super(struct caller *c)
{
	return btrkit_dump_super(c->io, calls_pick(c, 3) ? btrkit_super_offset(calls_pick(c, 3)) : calls_offset(c),
				 calls_flags(c, 15), calls_format(c), calls_write, c, &c->err);
}

static int devices(struct caller *c)
{
	return calls_pick(c, 2) ? btrkit_devices(c->fs, see_device, c, &c->err) :
				  print_devices(c->fs, calls_format(c), calls_write, c, &c->err);
}

static int chunks(struct caller *c)
{
	return calls_pick(c, 2) ? btrkit_chunks(c->fs, see_chunk, c, &c->err) :
				  print_chunks(c->fs, calls_format(c), calls_write, c, &c->err);
}

static int logical_copies(struct caller *c)
{
	const uint64_t at = calls_address(c);

	return calls_pick(c, 2) ? btrkit_logical_copies(c->fs, at, see_copy, c, &c->err) :
				  print_logical_copies(c->fs, at, calls_format(c), calls_write, c, &c->err);
}

static int used_ranges(struct caller *c)
{
	return btrkit_used_ranges(c->fs, calls_pick(c, 3), see_range, c, &c->err);
}

static int extract_tar(struct caller *c)
{
	const struct btrkit_extract_options opts = { .flags = calls_flags(c, 3),
						     .problem = calls_pick(c, 2) ? calls_problem : NULL,
						     .problem_ctx = c };
	const char *const paths[] = { calls_path(c), calls_path(c) };
	struct btrkit_extract_result result;

	return btrkit_extract_tar(c->fs, calls_root(c), paths, calls_pick(c, 3), calls_write, c,
				  calls_pick(c, 4) ? &opts : NULL, &result, &c->err);
}

static int extract(struct caller *c)
{
	return btrkit_extract(c->fs, calls_root(c), NULL, 0, "/dev/null/none", NULL, NULL, &c->err);
}

static int info(struct caller *c)
{
	struct btrkit_fs_info i;
	struct btrkit_write_stats stats;

	btrkit_fs_get_info(c->fs, &i);
	btrkit_fs_get_write_stats(c->fs, &stats);
	return !i.nodesize;
}

const struct call calls_reading[] = {
	{ "fiemap_path", fiemap_path, 0 },
	{ "fiemap_all", fiemap_all, 0 },
	{ "fiemap_printer", fiemap_printed, 0 },
	{ "extent_references", extent_references, 0 },
	{ "logical_find", logical_find, 0 },
	{ "logical_references", logical_references, 0 },
	{ "logical_references_print", logical_references_print, 0 },
	{ "inode_paths_print", inode_paths_print, 0 },
	{ "subvolume_find", subvolume_find, 0 },
	{ "subvolume_next", subvolume_next, CALLS_ONE },
	{ "subvolume_path", subvolume_path, 0 },
	{ "subvolumes_deletable", subvolumes_deletable, 0 },
	{ "inode_find", inode_find, 0 },
	{ "inode_get", inode_get, 0 },
	{ "inode_paths", inode_paths, 0 },
	{ "inode_entries", inode_entries, 0 },
	{ "inode_xattrs", inode_xattrs, 0 },
	{ "inode_extents", inode_extents, 0 },
	{ "file_open", file_open, 0 },
	{ "file_read", file_read, CALLS_FILE },
	{ "file_next_data", file_next_data, CALLS_FILE },
	{ "file_lost", file_lost, CALLS_FILE },
	{ "file_close", file_close, CALLS_FILE | CALLS_WITHOUT_ERROR },
	{ "ls_print", ls_print, 0 },
	{ "stat_print", stat_print, 0 },
	{ "subvolumes_print", subvolumes_print, 0 },
	{ "tree_stats_print", tree_stats_print, 0 },
	{ "diff_print", diff_print, 0 },
	{ "dump_tree", dump_tree, 0 },
	{ "dump_raw", dump_raw, 0 },
	{ "dump_super", dump_super, 0 },
	{ "devices", devices, 0 },
	{ "chunks", chunks, 0 },
	{ "logical_copies", logical_copies, 0 },
	{ "used_ranges", used_ranges, 0 },
	{ "extract_tar", extract_tar, 0 },
	{ "extract", extract, 0 },
	{ "info", info, CALLS_WITHOUT_ERROR },
};
const size_t num_calls_reading = sizeof(calls_reading) / sizeof(calls_reading[0]);
