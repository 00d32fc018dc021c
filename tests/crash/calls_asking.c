// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that query the extent tree or parse strings, and calls on devices without a filesystem. */
#include "lib/print/check.h"
#include "lib/print/space.h"
#include "lib/print/usage.h"
#include "lib/print/usage_html.h"
#include "tests/crash/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_SIZE (8u << 20)
#define LARGE_SIZE (120u << 20)

static int usage_load(struct caller *c)
{
	const struct btrkit_usage_options opts = { .flags = calls_flags(c, 0),
						   .threads = 1,
						   .progress = calls_progress,
						   .progress_ctx = c,
						   .damage = calls_pick(c, 2) ? calls_damage : NULL,
						   .damage_ctx = c };
	struct btrkit_usage *u = NULL;
	const int ret = btrkit_usage_load(c->fs, &opts, &u, &c->err);

	if (!ret) {
		c->paths = btrkit_usage_paths_free(c->paths);
		btrkit_usage_free(c->usage);
		c->usage = u;
	}
	return ret;
}

static int usage_paths_load(struct caller *c)
{
	const struct btrkit_usage_paths_options opts = { .flags = calls_flags(c, BTRKIT_USAGE_PATHS_LIMITED),
							 .depth = calls_pick(c, 3),
							 .threads = 1,
							 .progress = calls_progress,
							 .progress_ctx = c,
							 .damage = calls_pick(c, 2) ? calls_damage : NULL,
							 .damage_ctx = c };
	struct btrkit_usage_paths *p = NULL;
	const int ret = btrkit_usage_paths_load(c->fs, c->usage, &opts, &p, &c->err);

	if (!ret) {
		btrkit_usage_paths_free(c->paths);
		c->paths = p;
	}
	return ret;
}

/* Functions that cannot fail, or report errors only by their return value. */
static int usage_look(struct caller *c)
{
	struct btrkit_usage_owner owner;
	struct btrkit_usage_total total;
	struct btrkit_usage_types types;
	struct btrkit_usage_set set;
	struct btrkit_usage_extent extent;
	struct btrkit_usage_block block;
	struct btrkit_usage_path path;
	uint32_t owners[4];
	size_t at;

	btrkit_usage_get_total(c->usage, &total);
	btrkit_usage_get_types(c->usage, &types);
	for (size_t i = 0; i < btrkit_usage_num_owners(c->usage); i++)
		btrkit_usage_get_owner(c->usage, i, &owner);
	for (size_t i = 0; i < btrkit_usage_num_sets(c->usage); i++)
		btrkit_usage_get_set(c->usage, i, &set, owners, calls_pick(c, 5));
	for (size_t i = 0; i < btrkit_usage_num_extents(c->usage); i++)
		btrkit_usage_get_extent(c->usage, i, &extent);
	for (size_t i = 0; i < btrkit_usage_num_blocks(c->usage); i++)
		btrkit_usage_get_block(c->usage, i, &block);
	for (size_t i = 0; c->paths && i < btrkit_usage_paths_num(c->paths); i++)
		btrkit_usage_paths_get(c->paths, i, &path);
	if (c->paths && btrkit_usage_paths_find(c->paths, calls_root(c), &at) > 0)
		return 1;
	return btrkit_usage_find(c->usage, calls_root(c), &at);
}

static int usage_freed(struct caller *c)
{
	const uint32_t owners[] = { calls_pick(c, 6), calls_pick(c, 6), calls_one_in(c, 6) ? UINT32_MAX : 0 };
	struct btrkit_usage_space space;

	return btrkit_usage_freed(c->usage, owners, calls_pick(c, 4), &space, &c->err);
}

static int usage_matrix(struct caller *c)
{
	static struct btrkit_usage_space space[64 * 64];

	return btrkit_usage_num_owners(c->usage) > 64 ? 0 : btrkit_usage_matrix(c->usage, space, &c->err);
}

static int usage_rows(struct caller *c, struct usage_printer *p)
{
	const uint32_t owner = calls_pick(c, 3);

	switch (calls_pick(c, 4)) {
	case 0:
		return usage_printer_owners(p, &c->err);
	case 1:
		return usage_printer_freed(p, &owner, 1, &c->err);
	case 2:
		return usage_printer_matrix(p, &c->err);
	default:
		return c->paths ? usage_printer_paths(p, c->paths, &c->err) : 0;
	}
}

static int usage_printed(struct caller *c)
{
	const struct usage_printer_options opts = { .flags = calls_flags(c, USAGE_PRINTER_BYTES),
							 .format = calls_format(c),
							 .damage = calls_pick(c, 2) ? calls_damage : NULL,
							 .damage_ctx = c };
	struct usage_printer *p = NULL;
	int ret = usage_printer_create(c->fs, c->usage, &opts, calls_write, c, &p, &c->err);

	if (ret)
		return ret;
	ret = usage_rows(c, p);
	/* These report errors only by their return value. */
	if (!ret && (usage_printer_types(p) > 0 || usage_printer_extents(p) > 0))
		ret = 1;
	return usage_printer_finish(p) > 0 ? 1 : ret;
}

static int usage_html(struct caller *c)
{
	return print_usage_html(c->fs, c->usage, c->paths, NULL, calls_write, c, &c->err);
}

static int space_status(struct caller *c)
{
	struct btrkit_space_summary sum;

	return calls_pick(c, 2) ? btrkit_space_status(c->fs, NULL, &sum, &c->err) :
				  print_space_status(c->fs, calls_format(c), calls_write, c, &sum, &c->err);
}

static struct btrkit_space_change_options how_to_change(struct caller *c)
{
	return (struct btrkit_space_change_options){ .flags = calls_flags(c, BTRKIT_SPACE_DRY_RUN),
						     .progress = calls_progress,
						     .progress_ctx = c };
}

static int space_convert(struct caller *c)
{
	const struct btrkit_space_change_options opts = how_to_change(c);
	struct btrkit_space_change change;

	return btrkit_space_convert(c->fs, (enum btrkit_space_cache_kind)calls_pick(c, 4), &opts, &change, &c->err);
}

static int space_clear(struct caller *c)
{
	const struct btrkit_space_change_options opts = how_to_change(c);
	struct btrkit_space_change change;

	return btrkit_space_clear(c->fs, (enum btrkit_space_cache_kind)calls_pick(c, 4), &opts, &change, &c->err);
}

static int check(struct caller *c)
{
	const struct btrkit_check_options opts = { .flags = calls_flags(c, BTRKIT_CHECK_DATA),
						   .threads = 1,
						   .memory = calls_one_in(c, 4) ? 4096 : 0,
						   .progress = calls_progress,
						   .progress_ctx = c };
	struct btrkit_check_result result;

	return calls_pick(c, 2) ?
		       btrkit_check(c->fs, &opts, &result, &c->err) :
		       print_check(c->fs, &opts, calls_format(c), calls_write, c, &result, &c->err);
}

static int check_codes(struct caller *c)
{
	return print_check_codes(calls_format(c), calls_write, c, &c->err);
}

static int words(struct caller *c)
{
	static const char *const texts[] = { "", "5", "fs", "extent", "none", "DIR_ITEM", "256", "1,2,3-4,5,6",
					     "-", ",",
					     "18446744073709551616", "256,INODE_ITEM", "(256 1 0)-(257 1 0)" };
	const char *text = texts[calls_pick(c, 13)];
	struct btrkit_dump_range range;
	uint64_t tree;
	uint8_t type;
	size_t n;

	(void)btrkit_check_severity_name((enum btrkit_check_severity)calls_pick(c, 5));
	(void)btrkit_check_codes(&n);
	(void)btrkit_features(&n);
	(void)btrkit_dump_fields(&n);
	switch (calls_pick(c, 3)) {
	case 0:
		return btrkit_dump_range_parse(text, &range);
	case 1:
		return btrkit_item_type_parse(text, &type);
	default:
		return btrkit_tree_parse(text, &tree);
	}
}

static int one_of_io(struct caller *c, struct btrkit_io *io)
{
	static uint8_t buf[8192];
	char type[32];

	switch (calls_pick(c, 7)) {
	case 0:
		return btrkit_io_read(io, calls_offset(c), buf, calls_pick(c, sizeof(buf)), &c->err);
	case 1:
		return btrkit_io_write(io, calls_offset(c), buf, calls_pick(c, sizeof(buf)), &c->err);
	case 2:
		return btrkit_io_flush(io, &c->err);
	case 3:
		return btrkit_io_discard(io, calls_offset(c), calls_offset(c), &c->err);
	case 4:
		return btrkit_io_reserve(io, calls_offset(c), calls_offset(c), &c->err);
	case 5:
		return btrkit_io_clone(io, calls_offset(c), -1, calls_offset(c), calls_offset(c), &c->err);
	default:
		return btrkit_io_signature(io, type, sizeof(type), &c->err);
	}
}

static int io_wrapped(struct caller *c)
{
	const struct btrkit_io_faults faults = { calls_pick(c, 2), calls_pick(c, 2), calls_offset(c), -EIO, { 0 } };
	const struct btrkit_io_record_ops record = { NULL };
	struct btrkit_io *io = NULL, *over = NULL;
	int ret = btrkit_io_memory(calls_one_in(c, 8) ? UINT64_MAX : DEVICE_SIZE, &io, &c->err);

	if (ret)
		return ret;
	if (calls_pick(c, 2))
		ret = btrkit_io_fault(io, &faults, &over, &c->err);
	else
		ret = btrkit_io_record(io, &record, NULL, &over, &c->err);
	if (!ret)
		ret = one_of_io(c, over);
	btrkit_io_close(over ? over : io);
	return ret;
}

static int fs_scan(struct caller *c)
{
	struct btrkit_io *found[1];
	size_t count;

	/* Scan only this device: other sources would depend on the machine. */
	return btrkit_fs_scan(&c->io, 1, 1u << 20, found, 1, &count, &c->err);
}

static int mkfs(struct caller *c)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	struct btrkit_mkfs_result result;
	struct btrkit_io *io = NULL;
	int ret = btrkit_io_memory(calls_one_in(c, 3) ? DEVICE_SIZE : LARGE_SIZE, &io, &c->err);

	if (ret)
		return ret;
	o.flags = calls_flags(c, BTRKIT_MKFS_REPRODUCIBLE | BTRKIT_MKFS_QUOTA);
	o.nodesize = calls_one_in(c, 4) ? calls_pick(c, 1u << 18) : 4096u << calls_pick(c, 5);
	o.data = (enum btrkit_profile)calls_pick(c, 11);
	o.metadata = (enum btrkit_profile)calls_pick(c, 11);
	o.mixed = calls_one_in(c, 4);
	o.label = calls_one_in(c, 4) ? "a label" : NULL;
	ret = btrkit_mkfs(&io, 1, calls_pick(c, 3) ? &o : NULL, &result, &c->err);
	btrkit_io_close(io);
	return ret;
}

static int mkfs_min_size(struct caller *c)
{
	struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	uint64_t size;

	o.nodesize = 4096u << calls_pick(c, 6);
	o.data = (enum btrkit_profile)calls_pick(c, 11);
	return btrkit_mkfs_min_size(&o, calls_pick(c, 5), &size, &c->err);
}

const struct call calls_asking[] = {
	{ "usage_load", usage_load, 0 },
	{ "usage_paths_load", usage_paths_load, CALLS_USAGE },
	{ "usage_look", usage_look, CALLS_USAGE | CALLS_WITHOUT_ERROR },
	{ "usage_freed", usage_freed, CALLS_USAGE },
	{ "usage_matrix", usage_matrix, CALLS_USAGE },
	{ "usage_printer", usage_printed, CALLS_USAGE },
	{ "usage_html", usage_html, CALLS_USAGE },
	{ "space_status", space_status, 0 },
	{ "space_convert", space_convert, CALLS_SELDOM },
	{ "space_clear", space_clear, CALLS_SELDOM },
	{ "check", check, 0 },
	{ "check_codes", check_codes, 0 },
	{ "words", words, CALLS_WITHOUT_ERROR },
	{ "io_wrapped", io_wrapped, 0 },
	{ "fs_scan", fs_scan, 0 },
	{ "mkfs", mkfs, CALLS_SELDOM },
	{ "mkfs_min_size", mkfs_min_size, CALLS_SELDOM },
};
const size_t num_calls_asking = sizeof(calls_asking) / sizeof(calls_asking[0]);
