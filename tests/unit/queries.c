// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queries that printers take their facts from: each fact of a filesystem that the test itself has made. The tests of
 * commands see the same facts only as text.
 */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u
#define DATA_BYTES 16384u

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static uint64_t file, dir, link_inode, sub, snap;

static void must(int ret)
{
	written_check(ret, &err);
}

/*
 * A file of one extent, with two names, one of them in a directory; a symbolic link; a subvolume, and its read-only
 * snapshot, which has one name less.
 */
static int make(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_new_inode a_dir = { .mode = 040755 };
	const struct btrkit_new_inode a_link = { .mode = 0120777, .target = "dir/file" };
	const struct btrkit_new_snapshot read_only = { .flags = BTRKIT_NEW_SNAPSHOT_READ_ONLY };
	const struct btrkit_place hard = { BTRKIT_TOP_LEVEL, TOP, "hard", 4 };
	static const uint8_t bytes[DATA_BYTES] = { 1, 2, 3 };
	struct btrkit_txn *txn;
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	txn = written_start(fs);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &a_dir, &dir, &err));
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "file", 4, NULL, &file, &err));
	must(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, file, &hard, &err));
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "link", 4, &a_link, &link_inode, &err));
	must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, 4096, bytes, sizeof(bytes), NULL, &err));
	must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, dir, "sub", 3, NULL, &sub, &err));
	written_commit(txn);
	txn = written_start(fs);
	must(btrkit_txn_subvolume_snapshot(txn, sub, BTRKIT_TOP_LEVEL, TOP, "snap", 4, &read_only, &snap, &err));
	written_commit(txn);
	txn = written_start(fs);
	must(btrkit_txn_create(txn, sub, TOP, "new", 3, NULL, NULL, &err));
	written_commit(txn);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	btrkit_fs_close(fs);
	written_destroy(&w);
	return 0;
}

struct seen {
	struct btrkit_subvolume_item item[2];
	char path[2][16];
	uint64_t snapshot;	/* the only one of the first subvolume */
	unsigned n;
};

static int see_subvolume(void *ctx, const struct btrkit_subvolume_item *s)
{
	struct seen *seen = ctx;

	assert_in_range(seen->n, 0, 1);
	assert_in_range(s->path_len, 1, 15);
	memcpy(seen->path[seen->n], s->path, s->path_len);
	if (s->num_snapshots == 1)
		seen->snapshot = s->snapshots[0];
	seen->item[seen->n++] = *s;
	return 0;
}

static void test_subvolumes(void **state)
{
	struct btrkit_subvolumes_options o = BTRKIT_SUBVOLUMES_OPTIONS_INIT;
	struct btrkit_subvolume_item one;
	const struct btrkit_subvolume_item *a, *b;
	struct btrkit_fs_info info;
	struct seen seen = { .n = 0 };
	(void)state;

	o.flags = BTRKIT_SUBVOLUMES_RELATIONS;
	must(btrkit_subvolumes(fs, &o, see_subvolume, &seen, &err));
	assert_int_equal(seen.n, 2);
	a = &seen.item[0];
	b = &seen.item[1];
	btrkit_fs_get_info(fs, &info);
	assert_int_equal(a->id, sub);
	assert_int_equal(b->id, snap);
	assert_string_equal(seen.path[0], "dir/sub");
	assert_string_equal(seen.path[1], "snap");
	assert_int_equal(a->parent, BTRKIT_TOP_LEVEL);
	assert_int_equal(b->parent, BTRKIT_TOP_LEVEL);
	assert_int_equal(a->otransid, info.generation - 2);
	assert_int_equal(a->last_snapshot, info.generation - 1);
	assert_int_equal(a->generation, info.generation);
	assert_int_equal(b->otransid, info.generation - 1);
	assert_false(a->read_only);
	assert_true(b->read_only);
	assert_int_equal(a->flags, 0);
	assert_int_equal(b->flags, BTRKIT_SUBVOLUME_FLAG_READ_ONLY);
	assert_false(a->deleted || b->deleted || a->is_default || b->is_default);
	assert_memory_equal(b->parent_uuid, a->uuid, 16);
	assert_memory_not_equal(a->uuid, b->uuid, 16);
	assert_int_equal(a->num_snapshots, 1);
	assert_int_equal(seen.snapshot, snap);
	assert_int_equal(b->num_snapshots, 0);
	assert_int_equal(a->level, 0);
	assert_int_equal(a->bytes_used, info.nodesize);
	assert_int_not_equal(a->bytenr, b->bytenr);

	must(btrkit_subvolume_get(fs, snap, &one, &err));
	assert_int_equal(one.id, snap);
	assert_int_equal(one.bytenr, b->bytenr);
	assert_int_equal(one.otransid, b->otransid);
	assert_true(one.read_only);
	assert_memory_equal(one.parent_uuid, a->uuid, 16);
	assert_null(one.path);
	assert_int_equal(btrkit_subvolume_get(fs, 1000, &one, NULL), -ENOENT);
}

static int see_stats(void *ctx, const struct btrkit_tree_stats *s)
{
	*(struct btrkit_tree_stats *)ctx = *s;
	return 0;
}

static int lost_nothing(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	fail_msg("%s", what->message);
	return 0;
}

/* An inode with its reference has 160 and 12 bytes of items; each item has 25 of a leaf, whose header has 101. */
static void test_tree_stats(void **state)
{
	static struct btrkit_tree_stats s;
	struct btrkit_subvolume_item item;
	(void)state;

	must(btrkit_tree_stats_around(fs, &snap, 1, see_stats, lost_nothing, &s, &err));
	assert_int_equal(s.lost_blocks, 0);
	must(btrkit_tree_stats(fs, &snap, 1, see_stats, &s, &err));
	must(btrkit_subvolume_get(fs, snap, &item, &err));
	assert_int_equal(s.tree, snap);
	assert_int_equal(s.bytenr, item.bytenr);
	assert_int_equal(s.generation, item.generation);
	assert_int_equal(s.num_levels, 1);
	assert_int_equal(s.levels[0].blocks, 1);
	assert_int_equal(s.levels[0].items, 2);
	assert_int_equal(s.levels[0].used, 101 + 2 * 25 + 160 + 12);
	assert_int_equal(s.types[1].count, 1);
	assert_int_equal(s.types[1].bytes, 160);
	assert_int_equal(s.types[1].objectid, TOP);
	assert_int_equal(s.types[12].count, 1);
	assert_int_equal(s.types[12].bytes, 12);
	assert_int_equal(s.inline_bytes, 0);
	assert_null(s.damage);
	assert_int_equal(btrkit_tree_stats(fs, &(uint64_t){ 1000 }, 1, see_stats, &s, NULL), -ENOENT);
}

struct text {
	char bytes[16384];
	size_t len;
};

static int append(void *ctx, const void *data, size_t len)
{
	struct text *t = ctx;

	assert_in_range(len, 0, sizeof(t->bytes) - 1 - t->len);
	memcpy(t->bytes + t->len, data, len);
	t->len += len;
	return 0;
}

struct differences {
	unsigned both, first, second;
	struct text entry;
};

static int see_difference(void *ctx, const struct btrkit_diff_item *item)
{
	struct differences *d = ctx;

	assert_int_equal(item->tree, sub);
	if (item->a && item->b) {
		assert_int_equal(item->key.objectid, TOP);
		assert_int_equal(item->key.type, 1);
		assert_int_equal(item->a_size, 160);
		assert_int_equal(item->b_size, 160);
		assert_memory_not_equal(item->a, item->b, 160);
		d->both++;
	} else if (item->a) {
		d->first++;
		if (!strcmp(btrkit_item_type_name(item->key.objectid, item->key.type), "DIR_ITEM"))
			must(btrkit_dump_item(fs, item->tree, &item->key, item->a, item->a_size, 0, BTRKIT_FORMAT_TEXT,
					      append, &d->entry, &err));
	} else {
		d->second++;
	}
	return 0;
}

static int never_lost(void *ctx, unsigned side, const struct btrkit_error *what)
{
	(void)ctx;
	fail_msg("side %u: %s", side, what->message);
	return 0;
}

/* The new name is two entries, an inode and a reference; its directory has changed. */
static void test_diff(void **state)
{
	const struct btrkit_diff_side a = { fs, sub }, b = { fs, snap };
	struct differences d = { .both = 0 };
	(void)state;

	must(btrkit_diff(&a, &b, see_difference, &d, &err));
	assert_int_equal(d.both, 1);
	assert_int_equal(d.first, 4);
	assert_int_equal(d.second, 0);
	assert_non_null(strstr(d.entry.bytes, "name: new\n"));
	assert_non_null(strstr(d.entry.bytes, "type FILE"));
	/* Without damage to go around, nothing else is found. */
	d = (struct differences){ .both = 0 };
	must(btrkit_diff_around(&a, &b, see_difference, never_lost, &d, &err));
	assert_int_equal(d.both, 1);
	assert_int_equal(d.first, 4);
}

static void test_type_names(void **state)
{
	(void)state;
	assert_string_equal(btrkit_item_type_name(TOP, 1), "INODE_ITEM");
	assert_string_equal(btrkit_item_type_name((uint64_t)-11, 0), "UNTYPED");
	assert_null(btrkit_item_type_name(TOP, 0));
	assert_null(btrkit_item_type_name(TOP, 222));
}

static int see_path(void *ctx, const char *path, size_t len)
{
	return append(ctx, path, len);
}

static void test_paths(void **state)
{
	struct text target = { .len = 0 }, path = { .len = 0 };
	struct btrkit_fs_info info;
	(void)state;

	must(btrkit_link_target(fs, BTRKIT_TOP_LEVEL, link_inode, see_path, &target, &err));
	assert_string_equal(target.bytes, "dir/file");
	assert_int_equal(btrkit_link_target(fs, BTRKIT_TOP_LEVEL, file, see_path, &target, NULL), -EINVAL);
	must(btrkit_subvolume_path(fs, sub, see_path, &path, &err));
	assert_string_equal(path.bytes, "dir/sub");
	btrkit_fs_get_info(fs, &info);
	assert_int_equal(info.data_copies, 1);
}

/* Each directory is entered once, by its own name. */
static void test_descent(void **state)
{
	struct btrkit_dir_entry e = { "dir", 3, BTRKIT_TOP_LEVEL, dir, 2, 4 };
	struct btrkit_descent *d;
	(void)state;

	must(btrkit_descent_begin(fs, BTRKIT_TOP_LEVEL, TOP, &d, &err));
	e.name = "der";
	assert_int_equal(btrkit_descent_enter(d, BTRKIT_TOP_LEVEL, TOP, &e, NULL), -EUCLEAN);
	e.name = "dir";
	must(btrkit_descent_enter(d, BTRKIT_TOP_LEVEL, TOP, &e, &err));
	btrkit_descent_end(d);
}

static int see_extent(void *ctx, const struct btrkit_file_extent *extent)
{
	*(struct btrkit_file_extent *)ctx = *extent;
	return 0;
}

static int see_reference(void *ctx, const struct btrkit_reference *ref)
{
	*(struct btrkit_reference *)ctx = *ref;
	return 0;
}

static void test_references(void **state)
{
	struct btrkit_file_extent extent = { .bytenr = 0 };
	struct btrkit_allocation found;
	struct btrkit_reference ref;
	(void)state;

	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, see_extent, &extent, &err));
	assert_int_equal(extent.logical, 4096);
	assert_int_equal(extent.length, DATA_BYTES);
	must(btrkit_logical_find(fs, extent.bytenr + 5000, &found, &err));
	assert_int_equal(found.bytenr, extent.bytenr);
	assert_int_equal(found.length, DATA_BYTES);
	assert_int_equal(found.generation, extent.generation);
	assert_true(found.data);
	must(btrkit_logical_references(fs, extent.bytenr + 5000, 0, see_reference, &ref, &err));
	assert_int_equal(ref.root, BTRKIT_TOP_LEVEL);
	assert_int_equal(ref.inode, file);
	assert_int_equal(ref.offset, 4096 + 5000);
	must(btrkit_logical_references(fs, extent.bytenr + 5000, BTRKIT_LOGICAL_WHOLE_EXTENT, see_reference, &ref,
				       &err));
	assert_int_equal(ref.offset, 4096);
	assert_int_equal(ref.length, DATA_BYTES);
	must(btrkit_extent_references(fs, extent.bytenr, see_reference, &ref, &err));
	assert_int_equal(ref.inode, file);
	assert_int_equal(btrkit_extent_references(fs, extent.bytenr + 4096, see_reference, &ref, NULL), -ENOENT);
}

struct names {
	char path[3][16];
	unsigned n;
};

static int see_name(void *ctx, const char *path, size_t len)
{
	struct names *names = ctx;

	assert_in_range(names->n, 0, 2);
	assert_in_range(len, 0, 15);
	memcpy(names->path[names->n++], path, len);
	return 0;
}

static int stop(void *ctx, const char *path, size_t len)
{
	(void)ctx;
	(void)path;
	(void)len;
	return -EINTR;
}

static void test_inode_paths(void **state)
{
	struct names names = { .n = 0 }, top = { .n = 0 };
	struct btrkit_inode inode;
	(void)state;

	must(btrkit_inode_paths(fs, BTRKIT_TOP_LEVEL, file, see_name, &names, &err));
	assert_int_equal(names.n, 2);
	assert_string_equal(names.path[0], "hard");
	assert_string_equal(names.path[1], "dir/file");
	must(btrkit_inode_get(fs, BTRKIT_TOP_LEVEL, file, &inode, &err));
	assert_int_equal(inode.nlink, names.n);
	must(btrkit_inode_paths(fs, BTRKIT_TOP_LEVEL, TOP, see_name, &top, &err));
	assert_int_equal(top.n, 1);
	assert_string_equal(top.path[0], "");
	assert_int_equal(btrkit_inode_paths(fs, BTRKIT_TOP_LEVEL, file, stop, NULL, &err), -EINTR);
	assert_int_equal(btrkit_inode_paths(fs, BTRKIT_TOP_LEVEL, 9999, see_name, &names, NULL), -ENOENT);
	assert_int_equal(btrkit_inode_paths(fs, 9999, file, see_name, &names, NULL), -ENOENT);
}

/* The last name of a path is followed by one of the two functions only. */
static void test_find_target(void **state)
{
	struct btrkit_inode found;
	(void)state;

	must(btrkit_inode_find(fs, BTRKIT_TOP_LEVEL, "link", &found, &err));
	assert_int_equal(found.inode, link_inode);
	must(btrkit_inode_find_target(fs, BTRKIT_TOP_LEVEL, "link", &found, &err));
	assert_int_equal(found.inode, file);
	must(btrkit_inode_find_target(fs, BTRKIT_TOP_LEVEL, "dir/file", &found, &err));
	assert_int_equal(found.inode, file);
	assert_int_equal(btrkit_inode_find_target(fs, BTRKIT_TOP_LEVEL, "none", &found, NULL), -ENOENT);
}

/* The file begins with a hole; behind its data is nothing. Where it was read, nothing is lost. */
static void test_next_data(void **state)
{
	uint64_t start = 1, length = 1;
	uint8_t byte[2];
	struct btrkit_file *f;
	size_t len;
	(void)state;

	must(btrkit_file_open(fs, BTRKIT_TOP_LEVEL, file, &f, &err));
	must(btrkit_file_next_data(f, 0, &start, &length, &err));
	assert_int_equal(start, 4096);
	assert_int_equal(length, DATA_BYTES);
	must(btrkit_file_next_data(f, 5000, &start, &length, &err));
	assert_int_equal(start, 5000);
	assert_int_equal(length, 4096 + DATA_BYTES - 5000);
	for (unsigned i = 0; i < 2; i++) {
		must(btrkit_file_next_data(f, (i + 1) * (4096ull + DATA_BYTES), &start, &length, &err));
		assert_int_equal(start, 4096 + DATA_BYTES);
		assert_int_equal(length, 0);
	}
	must(btrkit_file_read(f, 4095, byte, 2, &len, &err));
	assert_int_equal(len, 2);
	assert_int_equal(byte[0], 0);
	assert_int_equal(byte[1], 1);
	start = length = 77;
	assert_int_equal(btrkit_file_lost(f, &start, &length), 1);
	assert_int_equal(start + length, 154);
	btrkit_file_close(f);
}

/* The first field of a block is its checksum; a block of a single device has two copies by default. */
static void test_dump_raw(void **state)
{
	static struct text text;
	struct btrkit_subvolume_item item;
	(void)state;

	must(btrkit_subvolume_get(fs, snap, &item, &err));
	must(btrkit_dump_raw(fs, item.bytenr, 1, BTRKIT_FORMAT_TEXT, append, &text, &err));
	assert_ptr_equal(strstr(text.bytes, "block "), text.bytes);
	assert_non_null(strstr(text.bytes, " copy 2 on device 1 at "));
	assert_non_null(strstr(text.bytes, "INODE_ITEM"));
	assert_null(strstr(text.bytes, "INODE_EXTREF"));
	assert_int_equal(btrkit_dump_raw(fs, item.bytenr, 2, 0, append, &text, NULL), -ENOENT);
	assert_int_equal(btrkit_dump_raw(fs, item.bytenr + 1, 0, 0, append, &text, NULL), -EINVAL);
	assert_int_equal(btrkit_dump_raw(fs, 1ull << 50, 0, 0, append, &text, NULL), -EUCLEAN);
}

/* Nothing is missing, so nothing is looked for. */
static void test_scan(void **state)
{
	struct btrkit_io *io = written_io(&w), *found[1] = { NULL };
	size_t count = 77;
	(void)state;

	must(btrkit_fs_scan(&io, 1, BTRKIT_SCAN_ALL, found, 1, &count, &err));
	assert_int_equal(count, 0);
	assert_int_equal(btrkit_fs_scan(&io, 1, 1u << 30, found, 1, &count, NULL), -EINVAL);
	assert_int_equal(btrkit_fs_scan(&io, 0, 0, found, 1, &count, NULL), -EINVAL);
	assert_null(found[0]);
	btrkit_io_close(io);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subvolumes),
		cmocka_unit_test(test_tree_stats),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_type_names),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_descent),
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_inode_paths),
		cmocka_unit_test(test_find_target),
		cmocka_unit_test(test_next_data),
		cmocka_unit_test(test_dump_raw),
		cmocka_unit_test(test_scan),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
