// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading files of any filesystem: listed, with everything about their inodes, extracted as an archive, by number and
 * by path, with file data if the input has it. For the input see device.h.
 */
#include "lib/print/layout.h"
#include "lib/print/ls.h"
#include "lib/print/stat.h"
#include "tests/fuzz/device.h"

#include <stdlib.h>

#include <btrkit/extract.h>
#include <btrkit/file.h>
#include <btrkit/subvolume.h>

#define OUTPUT_MAX (64u << 20)
#define ROWS_MAX (1u << 18)
#define PIECE 20000
#define PIECES_MAX 64

/* Reads every byte, so that sanitizers see it. A filesystem can seem endless, so the amount is limited. */
static int touch(uint64_t *rows, const void *bytes, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)bytes)[i];
	*rows += len + 1;
	return *rows > ROWS_MAX || sum == UINT64_MAX ? -27 : 0;
}

/* A btrkit_lost_fn. */
static int tell_lost(void *ctx, const struct btrkit_error *what)
{
	if (!what->message[0])
		abort();
	return touch(ctx, what->message, 1);
}

/* Problems reported on the way must have a message too. */
static int tell(void *ctx, const char *path, size_t len, const struct btrkit_error *what)
{
	if (!what->message[0])
		abort();
	return touch(ctx, path, len);
}

static void list(struct btrkit_fs *fs, uint64_t root, struct fuzz_choices *c)
{
	static const char *const paths[] = {
		"dir/file", "small", "zstd", "sub", "/", "link", "", "../dir", "sub/clone"
	};
	struct print_ls_options opts = PRINT_LS_OPTIONS_INIT;
	struct print_stat_options stat = PRINT_STAT_OPTIONS_INIT;
	struct fuzz_json json = { .left = OUTPUT_MAX };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t told = 0;
	int ret;

	opts.flags = ((unsigned)fuzz_choose(c, 1) ^ (PRINT_LS_LONG | PRINT_LS_RECURSIVE)) & 0xf;
	opts.problem = tell;
	opts.problem_ctx = &told;
	fuzz_ended(print_ls(fs, root, NULL, 0, &opts, fuzz_write, &json.left, &err), &err);
	opts.format = BTRKIT_FORMAT_JSON;
	stat.format = BTRKIT_FORMAT_JSON;
	stat.problem = tell;
	stat.problem_ctx = &told;
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = print_ls(fs, root, NULL, 0, &opts, fuzz_write_json, &json, &err);
	fuzz_ended(ret, &err);
	fuzz_json_ended(&json, ret);
	json = (struct fuzz_json){ .left = OUTPUT_MAX };
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = print_stat(fs, root, paths, sizeof(paths) / sizeof(paths[0]), &stat, fuzz_write_json, &json, &err);
	fuzz_ended(ret, &err);
	fuzz_json_ended(&json, ret);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	stat.format = BTRKIT_FORMAT_TEXT;
	fuzz_ended(print_stat(fs, root, paths, 3, &stat, fuzz_write, &json.left, &err), &err);
}

static void extract(struct btrkit_fs *fs, uint64_t root, struct fuzz_choices *c)
{
	struct btrkit_extract_options opts = BTRKIT_EXTRACT_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t told = 0, room = OUTPUT_MAX;
	struct btrkit_extract_result result;
	int ret;

	if (!(fuzz_choose(c, 1) & 1))
		opts.problem = tell;
	opts.problem_ctx = &told;
	opts.left_out = tell;
	opts.left_out_ctx = &told;
	ret = btrkit_extract_tar(fs, root, NULL, 0, fuzz_write, &room, &opts, &result, &err);
	fuzz_ended(ret, &err);
}

static int take_path(void *ctx, const char *path, size_t len)
{
	return touch(ctx, path, len);
}

static int take_entry(void *ctx, const struct btrkit_dir_entry *entry)
{
	return touch(ctx, entry->name, entry->name_len);
}

static int take_xattr(void *ctx, const struct btrkit_xattr *x)
{
	int ret = touch(ctx, x->name, x->name_len);

	return ret ? ret : touch(ctx, x->value, x->value_len);
}

static int take_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	return touch(ctx, extent, sizeof(*extent));
}

static void pieces(struct btrkit_file *f, uint64_t offset)
{
	static uint8_t buf[PIECE];
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t start, length;
	size_t got;
	int ret;

	for (unsigned i = 0; i < PIECES_MAX; i++) {
		ret = btrkit_file_next_data(f, offset, &start, &length, &err);
		fuzz_ended(ret, &err);
		if (ret || !length)
			return;
		if (start < offset)
			abort();
		ret = btrkit_file_read(f, start, buf, sizeof(buf), &got, &err);
		fuzz_ended(ret, &err);
		if (ret)
			err = (struct btrkit_error)BTRKIT_ERROR_INIT;
		else if (got > sizeof(buf))
			abort();
		/* After a short read, skip the rest of this piece, so that pieces differ. */
		offset = start + (length < sizeof(buf) ? length : sizeof(buf));
		if (offset < start)
			return;
	}
}

static void read_inode(struct btrkit_fs *fs, uint64_t root, uint64_t number, uint64_t offset)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_inode inode;
	struct btrkit_file *f;
	uint64_t rows = 0;
	int ret;

	ret = btrkit_inode_get(fs, root, number, &inode, &err);
	fuzz_ended(ret, &err);
	if (ret)
		return;
	fuzz_ended(btrkit_inode_paths(fs, root, number, take_path, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_inode_paths_around(fs, root, number, take_path, tell_lost, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_inode_entries(fs, root, number, take_entry, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_inode_entries_around(fs, root, number, take_entry, tell_lost, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_inode_xattrs(fs, root, number, take_xattr, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_inode_extents(fs, root, number, take_extent, &rows, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	ret = btrkit_file_open(fs, root, number, &f, &err);
	fuzz_ended(ret, &err);
	if (ret)
		return;
	pieces(f, 0);
	pieces(f, offset);
	btrkit_file_close(f);
}

/* Used ranges are reported in order, and are not empty. */
static int take_used(void *ctx, const struct btrkit_used_range *range)
{
	struct btrkit_used_range *last = ctx;

	if (!range->length || (range->devid == last->devid && range->physical <= last->physical + last->length))
		abort();
	*last = *range;
	return 0;
}

/* The location of chunks and devices. */
static void layout(struct btrkit_fs *fs, struct fuzz_choices *c)
{
	uint64_t room = OUTPUT_MAX, logical = fuzz_choose(c, 8);
	struct btrkit_used_range last = { .devid = UINT64_MAX };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	fuzz_ended(print_devices(fs, BTRKIT_FORMAT_JSON, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_chunks(fs, BTRKIT_FORMAT_JSON, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(print_logical_copies(fs, logical, BTRKIT_FORMAT_TEXT, fuzz_write, &room, &err), &err);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	fuzz_ended(btrkit_used_ranges(fs, 0, take_used, &last, &err), &err);
}

static void read_all(struct btrkit_fs *fs, struct fuzz_choices *c)
{
	static const uint64_t roots[] = { 5, 256, 257, 5 };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint64_t offset, root, chosen = fuzz_choose(c, 1);

	root = chosen ? fuzz_choose(c, 2) : 5;
	list(fs, root, c);
	extract(fs, root, c);
	layout(fs, c);
	offset = fuzz_choose(c, 8);
	for (size_t i = 0; i < 4; i++)
		for (uint64_t number = 256; number < 272; number++)
			read_inode(fs, roots[i] + (i == 3 ? chosen : 0), number, offset);
	fuzz_ended(btrkit_subvolume_find(fs, "sub", &root, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct btrkit_open_options opts = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	uint8_t *copy = malloc(size + !size);
	struct fuzz_choices choices;
	struct btrkit_fs *fs;
	struct btrkit_io *io;
	int ret;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	io = fuzz_device_open(copy, size, false, &choices);
	if (io) {
		opts.flags = fuzz_choose(&choices, 1) & 1 ? BTRKIT_OPEN_PARTIAL : 0;
		ret = btrkit_fs_open(&io, 1, &opts, &fs, &err);
		fuzz_ended(ret, &err);
		if (ret) {
			btrkit_io_close(io);
		} else {
			read_all(fs, &choices);
			btrkit_fs_close(fs);
		}
	}
	free(copy);
	return 0;
}
