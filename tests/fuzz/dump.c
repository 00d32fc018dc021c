// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * dump-tree of any filesystem, however it is opened: from other roots, with unreadable chunks, complete or selected,
 * single blocks in hexadecimal, and the result of a scan. For the input see device.h.
 */
#include "tests/fuzz/device.h"

#include <stdlib.h>

#include <btrkit/dump.h>
#include <btrkit/filesystem.h>

#define OUTPUT_MAX (64u << 20)
#define RAW_MAX 16
#define DUMP_FLAGS 0x3ffu

static uint64_t choose_block(const struct btrkit_io *io, struct fuzz_choices *c)
{
	uint64_t at = fuzz_choose(c, 1);

	/* An address without a block. */
	return at == 255 ? fuzz_choose(c, 8) : fuzz_device_block(io, at);
}

/* Without choices in the input, open it as dump-tree does. */
static struct btrkit_fs *open_chosen(struct btrkit_io *io, struct fuzz_choices *c)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t how = fuzz_choose(c, 1);
	struct btrkit_fs *fs = NULL;
	int ret;

	if (!(how & 1))
		opts.flags |= BTRKIT_OPEN_PARTIAL;
	if (how & 2) {
		opts.flags |= BTRKIT_OPEN_BACKUP;
		opts.backup = how >> 6;
	} else if (how & 4) {
		opts.flags |= BTRKIT_OPEN_TREE_ROOT;
		opts.tree_root = choose_block(io, c);
	}
	if (how & 8) {
		opts.flags |= BTRKIT_OPEN_CHUNK_ROOT;
		opts.chunk_root = choose_block(io, c);
	}
	if (how & 16) {
		opts.flags |= BTRKIT_OPEN_SUPER_MIRROR;
		opts.super_mirror = fuzz_choose(c, 1) % 3;
	}
	if (how & 32)
		opts.cache_bytes = 1;
	ret = btrkit_fs_open(&io, 1, &opts, &fs, &err);
	fuzz_ended(ret, &err);
	if (ret)
		btrkit_io_close(io);
	return ret ? NULL : fs;
}

struct selection {
	struct btrkit_dump_select select;
	struct btrkit_dump_range range;
	uint8_t type;
	uint64_t numbers[1];
};

static struct btrkit_key choose_key(struct fuzz_choices *c)
{
	struct btrkit_key key;

	key.objectid = fuzz_choose(c, 8);
	key.type = (uint8_t)fuzz_choose(c, 1);
	key.offset = fuzz_choose(c, 8);
	return key;
}

/* Without choices in the input: the items of one file and of its extents. */
static void choose_selection(struct selection *s, const struct btrkit_io *io, struct fuzz_choices *c)
{
	static const char *const paths[] = { "dir/file", "small", "", "/", "sub/clone", "link/x", "dir/../dir", "n" };
	uint64_t what = fuzz_choose(c, 2);

	*s = (struct selection){ .select = BTRKIT_DUMP_SELECT_INIT };
	if (what & 1) {
		s->range.min = choose_key(c);
		s->range.max = choose_key(c);
		s->select.ranges = &s->range;
		s->select.num_ranges = 1;
	}
	if (what & 2) {
		s->type = (uint8_t)fuzz_choose(c, 1);
		s->select.types = &s->type;
		s->select.num_types = 1;
	}
	if (what & 4) {
		s->select.flags |= BTRKIT_DUMP_BY_INODE;
		s->select.inode = fuzz_choose(c, what & 0x100 ? 8 : 2);
	} else if (!(what & 0xff)) {
		s->select.flags |= BTRKIT_DUMP_WITH_EXTENTS;
		s->select.path = paths[what >> 8 & 7];
		s->select.subvolume = what >> 11 ? 255 + (what >> 11) : 0;
	}
	if (what & 8 && what & 4)
		s->select.flags |= BTRKIT_DUMP_WITH_EXTENTS;
	if (what & 16) {
		s->select.flags |= BTRKIT_DUMP_BY_BYTENR;
		s->select.min_bytenr = choose_block(io, c);
		s->select.max_bytenr = choose_block(io, c);
	}
	if (what & 32) {
		s->select.flags |= BTRKIT_DUMP_BY_GENERATION;
		s->select.min_generation = fuzz_choose(c, 1);
		s->select.max_generation = fuzz_choose(c, 8);
	}
	if (what & 64) {
		s->select.flags |= BTRKIT_DUMP_BY_LEVEL;
		s->select.min_level = what >> 8 & 7;
		s->select.max_level = what >> 11 & 7;
	}
}

static void dump(struct btrkit_fs *fs, struct btrkit_dump_options *opts)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct fuzz_json json = { .left = OUTPUT_MAX };
	int ret;

	ret = btrkit_dump_tree(fs, opts, opts->format ? fuzz_write_json : fuzz_write, &json, &err);
	fuzz_ended(ret, &err);
	fuzz_json_ended(&json, ret);
}

/* All of it as text and as JSON, then a selection. */
static void dump_all(struct btrkit_fs *fs, const struct btrkit_io *io, struct fuzz_choices *c)
{
	struct btrkit_dump_options opts = BTRKIT_DUMP_OPTIONS_INIT;
	struct selection s;
	uint64_t tree;

	opts.flags = (unsigned)fuzz_choose(c, 2) & DUMP_FLAGS;
	dump(fs, &opts);
	opts.flags ^= BTRKIT_DUMP_HIDE_NAMES;
	opts.format = BTRKIT_FORMAT_JSON;
	dump(fs, &opts);
	choose_selection(&s, io, c);
	opts.flags = BTRKIT_DUMP_FOLLOW * (unsigned)fuzz_choose(c, 1) & BTRKIT_DUMP_FOLLOW;
	opts.select = &s.select;
	dump(fs, &opts);
	if (fuzz_choose(c, 1) & 1)
		opts.fields = "kind,bytenr,key.type,item.stripes.devid,item.refs.root,copies.message";
	if (opts.flags) {
		s.numbers[0] = choose_block(io, c);
		opts.blocks = s.numbers;
		opts.num_blocks = 1;
	}
	tree = fuzz_choose(c, 2);
	if (tree && !s.select.path) {
		tree = tree == 0xffff ? fuzz_choose(c, 8) : tree;
		opts.trees = &tree;
		opts.num_trees = 1;
	}
	opts.format = BTRKIT_FORMAT_TEXT;
	dump(fs, &opts);
}

static void dump_raw(struct btrkit_fs *fs, const struct btrkit_io *io, struct fuzz_choices *c)
{
	uint64_t chosen = choose_block(io, c);
	unsigned copy = (unsigned)fuzz_choose(c, 1);

	for (size_t i = 0; i <= RAW_MAX; i++) {
		uint64_t bytenr = i == RAW_MAX ? chosen : fuzz_device_block(io, i);
		struct fuzz_json json = { .left = OUTPUT_MAX };
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		unsigned which = i == RAW_MAX ? copy : 0;
		int ret;

		fuzz_ended(btrkit_dump_raw(fs, bytenr, which, BTRKIT_FORMAT_TEXT, fuzz_write, &json.left, &err), &err);
		err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		ret = btrkit_dump_raw(fs, bytenr, which, BTRKIT_FORMAT_JSON, fuzz_write_json, &json, &err);
		fuzz_ended(ret, &err);
		fuzz_json_ended(&json, ret);
	}
}

/* This works even if no tree can be read. */
static void scan(uint8_t *data, size_t size, struct fuzz_choices *c)
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_dump_options opts = BTRKIT_DUMP_OPTIONS_INIT;
	struct btrkit_dump_scan_options found = BTRKIT_DUMP_SCAN_OPTIONS_INIT;
	struct fuzz_json json = { .left = OUTPUT_MAX };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct fuzz_choices records;
	struct btrkit_fs *fs;
	struct selection s;
	struct btrkit_io *io = fuzz_device_open(data, size, true, &records);
	int ret;

	if (!io)
		return;
	how.flags = BTRKIT_OPEN_PARTIAL;
	ret = btrkit_fs_open(&io, 1, &how, &fs, &err);
	fuzz_ended(ret, &err);
	if (ret) {
		btrkit_io_close(io);
		return;
	}
	choose_selection(&s, io, c);
	s.select.path = NULL;
	s.select.flags &= ~(unsigned)BTRKIT_DUMP_WITH_EXTENTS;
	opts.select = &s.select;
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_dump_scan(fs, &opts, NULL, fuzz_write, &json.left, &err), &err);
	found.flags = BTRKIT_DUMP_SCAN_BLOCKS;
	opts.format = BTRKIT_FORMAT_JSON;
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = btrkit_dump_scan(fs, &opts, &found, fuzz_write_json, &json, &err);
	fuzz_ended(ret, &err);
	fuzz_json_ended(&json, ret);
	btrkit_fs_close(fs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);
	struct fuzz_choices choices;
	struct btrkit_io *io;
	struct btrkit_fs *fs;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	io = fuzz_device_open(copy, size, false, &choices);
	fs = io ? open_chosen(io, &choices) : NULL;
	if (fs) {
		dump_all(fs, io, &choices);
		dump_raw(fs, io, &choices);
		btrkit_fs_close(fs);
	}
	scan(copy, size, &choices);
	free(copy);
	return 0;
}
