// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each allocation fails in turn: opening, listing, dumping and closing report it and leak nothing (seen under
 * AddressSanitizer).
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include <btrkit/btrkit.h>

#include "lib/format/ids.h"
#include "lib/format/items/files/inode.h"
#include "lib/print/diff.h"
#include "lib/print/fiemap.h"
#include "lib/print/space.h"
#include "lib/print/subvolumes.h"
#include "lib/print/tree_stats.h"
#include "lib/print/usage.h"
#include "lib/print/usage_html.h"
#include "tests/unit/memory.h"
#include "tests/unit/synthetic.h"

#define DIRS 40u

static struct disk_inode_item dir_item, file_item;
static struct {
	le64 index;
	le16 len;
	char name[4];
} __attribute__((packed)) names[DIRS + 1];
static uint8_t extent[21 + 100]; /* inline, 100 bytes */
static struct syn_item items[2 * DIRS + 4];

/* A chain of directories with a file at its end. */
static size_t make_items(void)
{
	size_t n = 0;

	dir_item.mode = le32_put(S_IFDIR | 0755);
	file_item.mode = le32_put(S_IFREG | 0644);
	dir_item.nlink = file_item.nlink = le32_put(1);
	file_item.size = le64_put(100);
	extent[0] = extent[8] = 1;
	extent[8] = 100;
	for (unsigned i = 0; i <= DIRS; i++) {
		bool file = i == DIRS;

		names[i].len = le16_put(4);
		memcpy(names[i].name, "name", 4);
		items[n++] = (struct syn_item){ KEY(256 + i, KEY_INODE_ITEM, 0), file ? &file_item : &dir_item,
						sizeof(dir_item) };
		if (i)
			items[n++] = (struct syn_item){ KEY(256 + i, KEY_INODE_REF, 255 + i), &names[i],
							sizeof(names[i]) };
	}
	items[n++] = (struct syn_item){ KEY(256 + DIRS, KEY_EXTENT_DATA, 0), extent, sizeof(extent) };
	return n;
}

static int discard(void *ctx, const void *data, size_t len)
{
	(void)data;
	*(size_t *)ctx += len;
	return 0;
}

static int ignore_damage(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return 0;
}

static int print_usage(struct usage_printer *p, struct btrkit_error *err)
{
	static const uint32_t owners[] = { 0, 1 };
	int ret = usage_printer_owners(p, err);

	if (!ret)
		ret = usage_printer_freed(p, owners, 2, err);
	if (!ret)
		ret = usage_printer_matrix(p, err);
	if (!ret)
		ret = usage_printer_types(p);
	return ret ? ret : usage_printer_extents(p);
}

static int use_usage(struct btrkit_fs *fs, size_t *written, struct btrkit_error *err)
{
	struct btrkit_usage_options how = { .threads = 1, .damage = ignore_damage };
	struct usage_printer *printer = NULL;
	struct btrkit_usage *usage = NULL;
	int ret, ended;

	ret = btrkit_usage_load(fs, &how, &usage, err);
	if (!ret)
		ret = usage_printer_create(fs, usage, NULL, discard, written, &printer, err);
	if (!ret)
		ret = print_usage(printer, err);
	ended = usage_printer_finish(printer);
	if (!ret && !ended)
		ret = print_usage_html(fs, usage, NULL, NULL, discard, written, err);
	btrkit_usage_free(usage);
	return ret ? ret : ended;
}

/* Nothing is lost for want of memory: that ends the work. */
static int lose(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	fail_msg("lost: %s", what->message);
	return 0;
}

static int lose_of(void *ctx, unsigned side, const struct btrkit_error *what)
{
	(void)side;
	return lose(ctx, what);
}

static int use_inspect(struct btrkit_fs *fs, size_t *written, struct btrkit_error *err)
{
	const struct btrkit_diff_side side = { fs, 5 }, all = { fs, 0 };
	struct btrkit_dump_options opts = BTRKIT_DUMP_OPTIONS_INIT;
	const struct btrkit_subvolumes_order path = { BTRKIT_SUBVOLUMES_BY_PATH, false };
	struct btrkit_subvolumes_options by_path = BTRKIT_SUBVOLUMES_OPTIONS_INIT;
	bool differ;
	int ret;

	by_path.order = &path;
	by_path.num_order = 1;
	opts.format = BTRKIT_FORMAT_JSON;
	opts.fields = "kind,key.objectid,item.size";
	ret = btrkit_dump_tree(fs, &opts, discard, written, err);
	if (!ret)
		ret = print_tree_stats(fs, NULL, 0, BTRKIT_FORMAT_TEXT, lose, NULL, discard, written, err);
	if (!ret)
		ret = print_subvolumes(fs, NULL, BTRKIT_FORMAT_JSON, NULL, NULL, discard, written, err);
	if (!ret)
		ret = print_subvolumes(fs, &by_path, BTRKIT_FORMAT_TEXT, NULL, NULL, discard, written, err);
	if (!ret)
		ret = print_diff(&side, &side, 0, BTRKIT_FORMAT_TEXT, lose_of, NULL, discard, written, &differ, err);
	if (ret)
		return ret;
	/* A filesystem does not differ from itself; a failure must leave the old value. */
	differ = true;
	ret = print_diff(&all, &all, 0, BTRKIT_FORMAT_TEXT, lose_of, NULL, discard, written, &differ, err);
	assert_int_equal(differ, ret != 0);
	return ret;
}

static int use(struct btrkit_io *io, size_t *written, struct btrkit_error *err)
{
	struct fiemap_printer *printer = NULL;
	struct btrkit_space_summary sum;
	struct btrkit_fs *fs;
	int ret, ended;

	ret = btrkit_fs_open(&io, 1, NULL, &fs, err);
	if (ret) {
		btrkit_io_close(io);
		return ret;
	}
	ret = fiemap_printer_create(fs, PRINT_FORMAT_TSV, 0, discard, written, &printer, err);
	if (!ret)
		ret = btrkit_fiemap_all(fs, fiemap_printer_sink(printer), NULL, err);
	ended = fiemap_printer_finish(printer, !ret);
	if (!ret)
		ret = ended;
	if (!ret)
		ret = btrkit_dump_tree(fs, NULL, discard, written, err);
	if (!ret)
		ret = print_space_status(fs, BTRKIT_FORMAT_TEXT, discard, written, &sum, err);
	if (!ret)
		ret = use_usage(fs, written, err);
	if (!ret)
		ret = use_inspect(fs, written, err);
	btrkit_fs_close(fs);
	return ret;
}

static void every_failing_allocation_is_told(void **state)
{
	size_t n = make_items(), whole = 0, written;
	uint64_t needed = 0, num;
	int ret = -ENOMEM;

	(void)state;
	for (uint64_t at = MEMORY_SUFFICES; ret; at = at == MEMORY_SUFFICES ? 0 : at + 1) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		struct synthetic s;

		syn_create(&s, items, n);
		written = 0;
		memory_count(at, true);
		ret = use(s.io, &written, &err);
		num = memory_end();
		if (at == MEMORY_SUFFICES) {
			if (ret)
				fail_msg("%s", err.message);
			whole = written;
			needed = num;
			ret = -ENOMEM;
			continue;
		}
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at, ret, err.message);
		/* A cached path is optional, the listing works without it; its output must be the same. */
		if (!ret)
			assert_int_equal(written, whole);
		if (!ret && at < needed)
			ret = -ENOMEM;
	}
	printf("%llu allocations failed in turn\n", (unsigned long long)needed);
	assert_true(needed > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_allocation_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
