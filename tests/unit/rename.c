// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Directory entries with a false type, which operations must not trust; and a directory must never be moved below
 * itself, neither by means of such an entry, nor by concurrent renames.
 */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include <btrkit/subvolume_modify.h>

#include "lib/format/items/files/dir.h"
#include "tests/unit/txn_rig.h"

#define TOP 256u
#define SECONDS 1

static const struct rig_kind kind = { "4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1,
				      { 160 } };

static struct btrkit_error err = BTRKIT_ERROR_INIT;
static struct btrkit_txn *txn;
static struct btrkit_fs *fs;
static struct rig rig;
static uint64_t above, below, inside;

static uint64_t create(uint64_t in, const char *name, uint32_t mode)
{
	const struct btrkit_new_inode what = { .mode = mode };
	uint64_t inode;

	rig_check(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, in, name, strlen(name), &what, &inode, &err), &err);
	return inode;
}

static void commit(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

/* Makes above/ with above/below/inside/ and the file above/file; a file other; and a subvolume. */
static int begin(void **state)
{
	(void)state;
	rig_make(&rig, &kind);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
	above = create(TOP, "above", S_IFDIR | 0755);
	below = create(above, "below", S_IFDIR | 0755);
	inside = create(below, "inside", S_IFDIR | 0755);
	create(above, "file", S_IFREG | 0644);
	create(TOP, "other", S_IFREG | 0644);
	rig_check(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, "sub", 3, NULL, NULL, &err), &err);
	commit();
	return 0;
}

static int end(void **state)
{
	(void)state;
	txn = btrkit_txn_abort(txn);
	btrkit_fs_close(fs);
	rig_destroy(&rig);
	return 0;
}

/* Changes the type in the DIR_ITEM of a name, which must be alone in its item. */
static void make_lie(uint64_t dir, const char *name, uint8_t type)
{
	const struct btrkit_key key = KEY(dir, KEY_DIR_ITEM, dir_name_hash(name, strlen(name)));
	struct edit_tree *t;
	uint8_t *data;
	uint32_t size;

	rig_check(overlay_tree(txn->overlay, BTRKIT_TOP_LEVEL, &t, &err), &err);
	rig_check(edit_bytes(t, &key, &data, &size, &err), &err);
	assert_int_equal(size, sizeof(struct disk_dir_item) + strlen(name));
	data[offsetof(struct disk_dir_item, type)] = type;
	commit();
}

static struct btrkit_place place(uint64_t dir, const char *name)
{
	return (struct btrkit_place){ BTRKIT_TOP_LEVEL, dir, name, strlen(name) };
}

/* Expects a failure with a location; continues with a new transaction. */
static void expect_told(int ret)
{
	assert_int_equal(ret, -EUCLEAN);
	assert_int_equal(err.code, BTRKIT_CORRUPT);
	assert_string_equal(err.field, "type");
	assert_int_equal(err.places & (BTRKIT_AT_TREE | BTRKIT_AT_KEY), BTRKIT_AT_TREE | BTRKIT_AT_KEY);
	assert_int_equal(err.tree, BTRKIT_TOP_LEVEL);
	err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	txn = btrkit_txn_abort(txn);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

static void expect_lie(const struct btrkit_place *from, const struct btrkit_place *to, unsigned flags)
{
	expect_told(btrkit_txn_rename(txn, from, to, flags, &err));
}

/* A directory whose entry claims that it is a file, as source and as target; also exchanged with a subvolume. */
static void a_directory_called_a_file(void **state)
{
	const struct btrkit_place a = place(TOP, "above"), f = place(inside, "new"), other = place(TOP, "other");
	const struct btrkit_place sub = place(TOP, "sub"), b = place(above, "below"), same = place(TOP, "new");

	(void)state;
	make_lie(TOP, "above", FT_REG);
	expect_lie(&a, &f, 0);
	expect_lie(&a, &same, 0);
	expect_lie(&other, &a, 0);
	expect_lie(&b, &a, BTRKIT_RENAME_EXCHANGE);
	expect_lie(&a, &sub, BTRKIT_RENAME_EXCHANGE);
	expect_lie(&sub, &a, BTRKIT_RENAME_EXCHANGE);
}

static void a_file_called_a_directory(void **state)
{
	const struct btrkit_place other = place(TOP, "other"), f = place(inside, "new"), sub = place(TOP, "sub");

	(void)state;
	make_lie(TOP, "other", FT_DIR);
	expect_lie(&other, &f, 0);
	expect_lie(&other, &sub, BTRKIT_RENAME_EXCHANGE);
	make_lie(TOP, "other", FT_REG);
	rig_check(btrkit_txn_rename(txn, &other, &f, 0, &err), &err);
}

/* Each wrong type, for a file and for a directory: the lookup must fail, and the name must stay. */
static void types_that_lie(void **state)
{
	static const uint8_t types[] = { FT_REG, FT_DIR, FT_CHR, FT_BLK, FT_FIFO, FT_SOCK, FT_SYMLINK };
	static const char *const names[] = { "other", "above" };
	struct btrkit_found found, linked;

	(void)state;
	rig_check(btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, above, "file", 4, &linked, &err), &err);
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(types); i++) {
		const uint8_t own = i % 2 ? FT_DIR : FT_REG, type = types[i / 2];
		const char *name = names[i % 2];
		const struct btrkit_place from = place(TOP, name), to = place(TOP, "to");

		if (type == own)
			continue;
		make_lie(TOP, name, type);
		expect_told(btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, &found, &err));
		expect_told(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, BTRKIT_UNLINK_FILE, &err));
		expect_told(btrkit_txn_unlink(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, BTRKIT_UNLINK_DIR, &err));
		expect_told(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, NULL, NULL, &err));
		expect_told(btrkit_txn_link(txn, BTRKIT_TOP_LEVEL, linked.inode, &from, &err));
		expect_told(btrkit_txn_subvolume_create(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, NULL, NULL, &err));
		expect_told(btrkit_txn_subvolume_snapshot(txn, BTRKIT_TOP_LEVEL, BTRKIT_TOP_LEVEL, TOP, name, from.len,
							  NULL, NULL, &err));
		expect_lie(&from, &to, 0);
		make_lie(TOP, name, own);
		assert_int_equal(btrkit_txn_create(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, NULL, NULL, &err),
				 -EEXIST);
		rig_check(btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, TOP, name, from.len, &found, &err), &err);
		assert_int_equal(found.type, i % 2 ? DT_DIR : DT_REG);
	}
}

static atomic_bool done;

/* Lets one name be a file and a directory in turn. */
static void *exchange(void *unused)
{
	const struct btrkit_place a = place(above, "file"), b = place(above, "below");

	(void)unused;
	while (!atomic_load(&done)) {
		struct btrkit_error e = BTRKIT_ERROR_INIT;
		const int ret = btrkit_txn_rename(txn, &a, &b, BTRKIT_RENAME_EXCHANGE, &e);

		if (ret != -ENOENT)
			rig_expect(ret, 0, &e);
	}
	return NULL;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Meanwhile the file may be moved below the directory, but never the directory itself. */
static void names_change_meanwhile(void **state)
{
	const struct btrkit_place name = place(above, "file"), to = place(inside, "new");
	const time_t until = now() + SECONDS + 1;
	unsigned moved = 0, refused = 0;
	pthread_t other;

	(void)state;
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&other, NULL, exchange, NULL), 0);
	while (now() < until) {
		struct btrkit_found found;
		const int ret = btrkit_txn_rename(txn, &name, &to, 0, &err);

		if (ret == -EINVAL) {
			refused++;
			continue;
		}
		rig_check(ret, &err);
		rig_check(btrkit_txn_lookup(txn, BTRKIT_TOP_LEVEL, inside, "new", 3, &found, &err), &err);
		if (found.type != DT_REG)
			fail_msg("after %u moves and %u refused ones a directory is below itself", moved, refused);
		rig_check(btrkit_txn_rename(txn, &to, &name, BTRKIT_RENAME_NOREPLACE, &err), &err);
		moved++;
	}
	atomic_store(&done, true);
	pthread_join(other, NULL);
	print_message("%u times moved, %u refused\n", moved, refused);
	assert_true(moved && refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_directory_called_a_file, begin, end),
		cmocka_unit_test_setup_teardown(a_file_called_a_directory, begin, end),
		cmocka_unit_test_setup_teardown(types_that_lie, begin, end),
		cmocka_unit_test_setup_teardown(names_change_meanwhile, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
