// SPDX-License-Identifier: LGPL-2.1-or-later
/* Iterators give the rows that the functions with callbacks give, whatever their number, and the same errors. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/tree/edit.h"
#include "tests/unit/written.h"

#define SIZE (160ull << 20)
#define TOP 256u
#define MANY 300u

static struct btrkit_error err;
static struct written w;
static struct btrkit_fs *fs;
static uint64_t file, dir;

static void must(int ret)
{
	char line[BTRKIT_ERROR_LINE];

	if (ret)
		fail_msg("%d: %s", ret, btrkit_error_format(&err, line, sizeof(line)));
}

static void begin_with(struct btrkit_txn **txn)
{
	must(btrkit_txn_start(fs, txn, &err));
}

/* A directory with many entries, and a file with many attributes and extents. */
static int make(void **state)
{
	const struct btrkit_mkfs_options o = BTRKIT_MKFS_OPTIONS_INIT;
	const struct btrkit_new_inode what = { .mode = 040755 };
	static const uint8_t bytes[4096] = { 1, 2, 3 };
	struct btrkit_txn *txn;
	char name[16];
	(void)state;

	written_make(&w, &o, SIZE);
	fs = written_open(&w, BTRKIT_OPEN_WRITE);
	begin_with(&txn);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "dir", 3, &what, &dir, &err));
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "file", 4, NULL, &file, &err));
	for (unsigned i = 0; i < MANY; i++) {
		const int len = snprintf(name, sizeof(name), "user.%u", i);

		must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, name, (size_t)len, NULL, NULL, &err));
		must(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, file, name, name, i % 10, 0, &err));
		must(btrkit_txn_write(txn, BTRKIT_TOP_LEVEL, file, (uint64_t)i * 16384, bytes, sizeof(bytes), NULL,
				      &err));
		if (i < 5)
			must(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, (size_t)len, NULL, NULL,
							 &err));
	}
	must(btrkit_txn_commit(txn, NULL, &err));
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	btrkit_fs_close(fs);
	written_destroy(&w);
	return 0;
}

/* What callbacks are called with is compared with what the iterator gives next. */
static struct btrkit_iter *it;
static unsigned rows;

static void expect_end(int ret, unsigned least)
{
	assert_int_equal(ret, 1);
	assert_true(rows >= least);
	it = btrkit_iter_free(it);
	rows = 0;
}

static int same_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	const struct btrkit_dir_entry *x;
	(void)ctx;

	must(btrkit_iter_next_entry(it, &x, &err));
	assert_int_equal(x->name_len, e->name_len);
	assert_memory_equal(x->name, e->name, e->name_len);
	assert_true(x->root == e->root && x->inode == e->inode && x->index == e->index && x->type == e->type);
	rows++;
	return 0;
}

static int same_xattr(void *ctx, const struct btrkit_xattr *e)
{
	const struct btrkit_xattr *x;
	(void)ctx;

	must(btrkit_iter_next_xattr(it, &x, &err));
	assert_int_equal(x->name_len, e->name_len);
	assert_int_equal(x->value_len, e->value_len);
	assert_memory_equal(x->name, e->name, e->name_len);
	if (x->value_len)
		assert_memory_equal(x->value, e->value, e->value_len);
	rows++;
	return 0;
}

static int same_file_extent(void *ctx, const struct btrkit_file_extent *e)
{
	const struct btrkit_file_extent *x;
	(void)ctx;

	must(btrkit_iter_next_file_extent(it, &x, &err));
	assert_memory_equal(x, e, sizeof(*x));
	rows++;
	return 0;
}

static int any_file(void *ctx, const struct btrkit_fiemap_file *f)
{
	(void)ctx;
	(void)f;
	return 0;
}

static int same_extents(void *ctx, const struct btrkit_extent *all, size_t n)
{
	const struct btrkit_extent *x;
	(void)ctx;

	for (size_t i = 0; i < n; i++) {
		must(btrkit_iter_next_extent(it, &x, &err));
		assert_true(x->logical == all[i].logical && x->physical == all[i].physical &&
			    x->length == all[i].length && x->flags == all[i].flags);
		rows++;
	}
	return 0;
}

static int same_device(void *ctx, const struct btrkit_device *e)
{
	const struct btrkit_device *x;
	(void)ctx;

	must(btrkit_iter_next_device(it, &x, &err));
	assert_true(x->devid == e->devid && x->total_bytes == e->total_bytes && x->bytes_used == e->bytes_used);
	assert_memory_equal(x->uuid, e->uuid, sizeof(x->uuid));
	assert_string_equal(x->name, e->name);
	rows++;
	return 0;
}

static int same_chunk(void *ctx, const struct btrkit_chunk *e)
{
	const struct btrkit_chunk *x;
	(void)ctx;

	must(btrkit_iter_next_chunk(it, &x, &err));
	assert_true(x->logical == e->logical && x->length == e->length && x->type == e->type && x->used == e->used);
	assert_int_equal(x->num_stripes, e->num_stripes);
	assert_memory_equal(x->stripes, e->stripes, x->num_stripes * sizeof(*x->stripes));
	rows++;
	return 0;
}

static void rows_are_those_of_callbacks(void **state)
{
	const struct btrkit_fiemap_sink sink = { .file = any_file, .extents = same_extents };
	const struct btrkit_file_extent *file_extent;
	const struct btrkit_dir_entry *entry;
	const struct btrkit_extent *extent;
	const struct btrkit_device *device;
	const struct btrkit_chunk *chunk;
	const struct btrkit_xattr *xattr;
	(void)state;

	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, dir, 0, &it, &err));
	must(btrkit_inode_entries(fs, BTRKIT_TOP_LEVEL, dir, same_entry, NULL, &err));
	expect_end(btrkit_iter_next_entry(it, &entry, &err), MANY);
	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, dir, 150, &it, &err));
	must(btrkit_inode_entries_after(fs, BTRKIT_TOP_LEVEL, dir, 150, same_entry, NULL, &err));
	expect_end(btrkit_iter_next_entry(it, &entry, &err), MANY / 2);
	/* Subvolumes among them. */
	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, TOP, 0, &it, &err));
	must(btrkit_inode_entries(fs, BTRKIT_TOP_LEVEL, TOP, same_entry, NULL, &err));
	expect_end(btrkit_iter_next_entry(it, &entry, &err), 7);
	must(btrkit_iter_xattrs(fs, BTRKIT_TOP_LEVEL, file, &it, &err));
	must(btrkit_inode_xattrs(fs, BTRKIT_TOP_LEVEL, file, same_xattr, NULL, &err));
	expect_end(btrkit_iter_next_xattr(it, &xattr, &err), MANY);
	must(btrkit_iter_file_extents(fs, BTRKIT_TOP_LEVEL, file, &it, &err));
	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, same_file_extent, NULL, &err));
	expect_end(btrkit_iter_next_file_extent(it, &file_extent, &err), MANY);
	must(btrkit_iter_fiemap(fs, BTRKIT_TOP_LEVEL, "file", &it, &err));
	must(btrkit_fiemap_path(fs, BTRKIT_TOP_LEVEL, "file", &sink, NULL, &err));
	expect_end(btrkit_iter_next_extent(it, &extent, &err), MANY);
	must(btrkit_iter_devices(fs, &it, &err));
	must(btrkit_devices(fs, same_device, NULL, &err));
	expect_end(btrkit_iter_next_device(it, &device, &err), 1);
	must(btrkit_iter_chunks(fs, &it, &err));
	must(btrkit_chunks(fs, same_chunk, NULL, &err));
	expect_end(btrkit_iter_next_chunk(it, &chunk, &err), 3);
}

/* Two names with one hash, as the last of a group of rows and the first of the next. */
static void equal_hashes_are_not_parted(void **state)
{
	static const char *const pair[] = { "user.d67a6aeb", "user.6a1aed85" };
	const uint32_t hash = dir_name_hash(pair[0], strlen(pair[0]));
	const struct btrkit_xattr *xattr;
	struct btrkit_txn *txn;
	unsigned before = 0;
	uint64_t inode;
	char name[16];
	(void)state;

	assert_int_equal(hash, dir_name_hash(pair[1], strlen(pair[1])));
	begin_with(&txn);
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, "pair", 4, NULL, &inode, &err));
	for (unsigned i = 0; i < 2; i++)
		must(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, inode, pair[i], "", 0, 0, &err));
	for (unsigned i = 0; before < 127 || i < 400; i++) {
		snprintf(name, sizeof(name), "user.%u", i);
		if (dir_name_hash(name, strlen(name)) < hash && before++ >= 127)
			continue;
		must(btrkit_txn_xattr_set(txn, BTRKIT_TOP_LEVEL, inode, name, "", 0, 0, &err));
	}
	must(btrkit_txn_commit(txn, NULL, &err));
	must(btrkit_iter_xattrs(fs, BTRKIT_TOP_LEVEL, inode, &it, &err));
	must(btrkit_inode_xattrs(fs, BTRKIT_TOP_LEVEL, inode, same_xattr, NULL, &err));
	expect_end(btrkit_iter_next_xattr(it, &xattr, &err), 129);
}

static void subvolumes_in_order(void **state)
{
	const struct btrkit_subvolume *x;
	struct btrkit_subvolume expected;
	uint64_t after = 0;
	int ret;
	(void)state;

	must(btrkit_iter_subvolumes(fs, 0, &it, &err));
	while (!(ret = btrkit_subvolume_next(fs, after, &expected, &err))) {
		must(btrkit_iter_next_subvolume(it, &x, &err));
		assert_memory_equal(x, &expected, sizeof(*x));
		after = x->id;
		rows++;
	}
	assert_int_equal(ret, 1);
	expect_end(btrkit_iter_next_subvolume(it, &x, &err), 6);
}

/* The rows of a group that was read may have changed since; all others are current. */
static void changes_are_seen(void **state)
{
	const struct btrkit_dir_entry *entry;
	struct btrkit_txn *txn;
	char name[16];
	unsigned n = 0;
	int ret;
	(void)state;

	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, dir, 0, &it, &err));
	must(btrkit_iter_next_entry(it, &entry, &err));
	begin_with(&txn);
	for (unsigned i = 200; i < 250; i++) {
		const int len = snprintf(name, sizeof(name), "user.%u", i);

		must(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, dir, name, (size_t)len, BTRKIT_UNLINK_FILE, &err));
	}
	must(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, dir, "last", 4, NULL, NULL, &err));
	must(btrkit_txn_commit(txn, NULL, &err));
	for (n = 1; !(ret = btrkit_iter_next_entry(it, &entry, &err)); n++)
		assert_true(n < MANY);
	assert_int_equal(ret, 1);
	assert_int_equal(n, MANY - 50 + 1);
	assert_int_equal(btrkit_iter_next_entry(it, &entry, &err), 1);
	it = btrkit_iter_free(it);
}

static void errors_are_returned(void **state)
{
	const struct btrkit_dir_entry *entry;
	const struct btrkit_device *device;
	(void)state;

	it = NULL;
	assert_int_equal(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, file, 0, &it, &err), -ENOTDIR);
	assert_int_equal(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, 9999, 0, &it, &err), -ENOENT);
	assert_int_equal(btrkit_iter_xattrs(fs, 9999, file, &it, &err), -ENOENT);
	assert_int_equal(btrkit_iter_file_extents(fs, BTRKIT_TOP_LEVEL, dir, &it, &err), -EINVAL);
	assert_int_equal(btrkit_iter_fiemap(fs, BTRKIT_TOP_LEVEL, "none", &it, &err), -ENOENT);
	assert_null(it);
	assert_null(btrkit_iter_free(NULL));
	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, dir, 0, &it, &err));
	assert_int_equal(btrkit_iter_next_device(it, &device, &err), -EINVAL);
	must(btrkit_iter_next_entry(it, &entry, &err));
	it = btrkit_iter_free(it);
}

static unsigned told;

static int count_lost(void *ctx, const struct btrkit_error *what)
{
	assert_ptr_equal(ctx, &told);
	assert_true(what->message[0]);
	told++;
	return 0;
}

static int stop_lost(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return -EINTR;
}

static int count_entry(void *ctx, const struct btrkit_dir_entry *e)
{
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}

/* The item with index 180 of 2 to 301 is damaged. */
static void check_around(void)
{
	static const uint64_t from[] = { 0, 1, 2, 179, 180, 181, 300, 301, UINT64_MAX };
	const struct btrkit_dir_entry *entry;

	for (unsigned i = 0; i < sizeof(from) / sizeof(*from); i++) {
		const uint64_t after = from[i], first = after < 2 ? 2 : after + 1;
		unsigned n = 0;
		uint64_t index;
		int ret;

		assert_int_equal(btrkit_inode_entries_after(fs, BTRKIT_TOP_LEVEL, dir, after, count_entry, &n, &err),
				 after < 180 ? -EUCLEAN : 0);
		assert_int_equal(n, after < 180 ? 180 - first : after < 301 ? 301 - after : 0);
		told = 0;
		must(btrkit_iter_entries_around(fs, BTRKIT_TOP_LEVEL, dir, after, count_lost, &told, &it, &err));
		for (index = first; !(ret = btrkit_iter_next_entry(it, &entry, &err)); index++)
			assert_int_equal(entry->index, index);
		assert_true(ret == 1 && told == 2 && (after > 301 || index == 302));
		it = btrkit_iter_free(it);
	}
	assert_int_equal(btrkit_iter_entries_around(fs, BTRKIT_TOP_LEVEL, dir, 0, stop_lost, NULL, &it, &err), -EINTR);
	assert_int_equal(btrkit_iter_entries_around(fs, BTRKIT_TOP_LEVEL, file, 0, count_lost, &told, &it, &err),
			 -ENOTDIR);
	assert_null(it);
}

/* What is before a damaged item comes first; then each call fails. */
static void rows_before_damage_come_first(void **state)
{
	const struct btrkit_key key = { dir, KEY_DIR_INDEX, 180 };
	const struct btrkit_dir_entry *entry;
	struct edit_tree *tree;
	struct btrkit_txn *txn;
	uint64_t last = 0;
	uint32_t size;
	uint8_t *data;
	int ret;
	(void)state;

	begin_with(&txn);
	must(txn_tree(txn, BTRKIT_TOP_LEVEL, &tree, &err));
	must(edit_bytes(tree, &key, &data, &size, &err));
	/* The length of the name: more than the item has. */
	data[27] = 0xff;
	must(btrkit_iter_entries(fs, BTRKIT_TOP_LEVEL, dir, 0, &it, &err));
	for (rows = 0; !(ret = btrkit_iter_next_entry(it, &entry, &err)); rows++)
		last = entry->index;
	assert_int_equal(ret, -EUCLEAN);
	assert_int_equal(last, 179);
	assert_int_equal(rows, 178);
	assert_int_equal(btrkit_iter_next_entry(it, &entry, &err), -EUCLEAN);
	it = btrkit_iter_free(it);
	rows = 0;
	check_around();
	btrkit_txn_abort(txn);
}

/* Damages a copy, or repairs it. A btrkit_copy_fn */
static int swap_bytes(void *ctx, const struct btrkit_copy *copy)
{
	struct btrkit_io *io = written_io(&w);
	uint8_t bytes[4];
	(void)ctx;

	must(btrkit_io_read(io, copy->physical + 4000, bytes, sizeof(bytes), &err));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] ^= 0x5a;
	must(btrkit_io_write(io, copy->physical + 4000, bytes, sizeof(bytes), &err));
	btrkit_io_close(io);
	return 0;
}

static int count_file_extent(void *ctx, const struct btrkit_file_extent *x)
{
	(void)x;
	++*(unsigned *)ctx;
	return 0;
}

/* A leaf with extents of the file is lost: rows of all others come. */
static void extents_around_damage(void **state)
{
	const struct btrkit_extent *x;
	struct btrkit_fs *other;
	uint64_t leaf;
	struct tree_root root;
	struct cursor c;
	unsigned n = 0, all = 0;
	(void)state;

	must(fs_find_root(fs, BTRKIT_TOP_LEVEL, &root, NULL, &err));
	cursor_init(&c, fs, &root);
	must(cursor_seek_back(&c, &KEY(file, KEY_EXTENT_DATA, MANY / 2 * 16384), &err));
	leaf = cursor_leaf(&c)->bytenr;
	cursor_release(&c);
	must(btrkit_inode_extents(fs, BTRKIT_TOP_LEVEL, file, count_file_extent, &all, &err));
	assert_int_equal(all, MANY);
	must(btrkit_logical_copies(fs, leaf, swap_bytes, NULL, &err));
	other = written_open(&w, 0);
	told = 0;
	must(btrkit_iter_fiemap_around(other, BTRKIT_TOP_LEVEL, "file", count_lost, &told, &it, &err));
	while (!btrkit_iter_next_extent(it, &x, &err))
		n++;
	it = btrkit_iter_free(it);
	assert_true(told == 1 && n > 0 && n < MANY);
	assert_int_equal(btrkit_iter_fiemap(other, BTRKIT_TOP_LEVEL, "file", &it, &err), -EUCLEAN);
	assert_int_equal(btrkit_iter_fiemap_around(other, BTRKIT_TOP_LEVEL, "file", stop_lost, NULL, &it, &err),
			 -EINTR);
	assert_null(it);
	assert_int_equal(btrkit_inode_extents_around(other, BTRKIT_TOP_LEVEL, file, count_file_extent, stop_lost, &all,
						     &err), -EINTR);
	btrkit_fs_close(other);
	must(btrkit_logical_copies(fs, leaf, swap_bytes, NULL, &err));
}

/* A root item that is not valid: each call fails for what is before it, and the listing goes on behind it. */
static void subvolumes_end_at_damage(void **state)
{
	const struct btrkit_subvolume *x;
	struct btrkit_subvolume s = { 0 };
	uint64_t ids[6], last = 0;
	struct edit_tree *tree;
	struct btrkit_txn *txn;
	uint32_t size;
	uint8_t *data;
	(void)state;

	for (unsigned i = 0; i < 6; i++) {
		must(btrkit_subvolume_next(fs, i ? ids[i - 1] : 0, &s, &err));
		ids[i] = s.id;
	}
	begin_with(&txn);
	must(txn_tree(txn, OID_ROOT_TREE, &tree, &err));
	must(edit_bytes(tree, &KEY(ids[3], KEY_ROOT_ITEM, 0), &data, &size, &err));
	((struct disk_root_item *)data)->level = 99;
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(btrkit_subvolume_next(fs, ids[i], &s, &err), i == 2 ? -EUCLEAN : i == 5);
	must(btrkit_iter_subvolumes(fs, 0, &it, &err));
	for (rows = 0; !btrkit_iter_next_subvolume(it, &x, &err); rows++)
		last = x->id;
	assert_true(rows == 3 && last == ids[2]);
	assert_int_equal(btrkit_iter_next_subvolume(it, &x, &err), -EUCLEAN);
	assert_int_equal(btrkit_iter_next_subvolume(it, &x, &err), -EUCLEAN);
	it = btrkit_iter_free(it);
	rows = 0;
	btrkit_txn_abort(txn);
}

struct findings {
	unsigned n;
	char codes[64][40];
};

static int take_finding(void *ctx, const struct btrkit_finding *f)
{
	struct findings *all = ctx;

	assert_true(all->n < 64);
	snprintf(all->codes[all->n++], sizeof(all->codes[0]), "%s", f->code->name);
	return 0;
}

/* A file whose link count is wrong, and which has a path. */
static void findings_come_with_their_paths(void **state)
{
	const struct btrkit_key key = { file, KEY_INODE_ITEM, 0 };
	struct findings all = { 0 };
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_check_result result;
	const struct btrkit_finding *f;
	struct edit_tree *tree;
	struct btrkit_txn *txn;
	bool path = false;
	uint32_t size;
	uint8_t *data;
	(void)state;

	begin_with(&txn);
	must(txn_tree(txn, BTRKIT_TOP_LEVEL, &tree, &err));
	must(edit_bytes(tree, &key, &data, &size, &err));
	((struct disk_inode_item *)data)->nlink = le32_put(7);
	must(btrkit_txn_commit(txn, NULL, &err));
	opts.finding = take_finding;
	opts.ctx = &all;
	must(btrkit_check(fs, &opts, NULL, &err));
	assert_true(all.n);
	must(btrkit_iter_findings(fs, NULL, &result, &it, &err));
	for (unsigned i = 0; i < all.n; i++) {
		must(btrkit_iter_next_finding(it, &f, &err));
		assert_string_equal(f->code->name, all.codes[i]);
		path = path || (f->path && !strcmp(f->path, "file"));
		rows++;
	}
	assert_true(path);
	expect_end(btrkit_iter_next_finding(it, &f, &err), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_of_callbacks),
		cmocka_unit_test(equal_hashes_are_not_parted),
		cmocka_unit_test(subvolumes_in_order),
		cmocka_unit_test(errors_are_returned),
		cmocka_unit_test(rows_before_damage_come_first),
		cmocka_unit_test(subvolumes_end_at_damage),
		cmocka_unit_test(extents_around_damage),
		cmocka_unit_test(changes_are_seen),
		cmocka_unit_test(findings_come_with_their_paths),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
