// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A directory of which one leaf is lost: paths go by the other kind of item, but a single step never does; and each
 * allocation fails in turn while its names are listed, or the paths of an inode whose references are lost (leaks are
 * found by running this under AddressSanitizer).
 */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include <btrkit/inode.h>

#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/inode.h"
#include "lib/fs/path.h"
#include "tests/unit/hostile.h"
#include "tests/unit/memory.h"

#define NAMES 90u
#define NAME "a-name-of-many-letters-so-that-few-items-fit-into-each-leaf-of-a-tree-%02u"
#define DIR 257u
#define HEADER_BYTES 101u /* of a tree block; behind it are items of 25 bytes, which begin with their keys */

static struct hostile h;
static struct synthetic s;

/*
 * Damages both copies of the first leaf that has only items of these types, or of all such leaves. *@inode: of its last
 * item. @return the number of items
 */
static unsigned lose_leaf(uint8_t lowest, uint8_t highest, bool all, uint64_t *inode)
{
	uint8_t block[SYN_NODESIZE];
	unsigned lost = 0;

	for (uint64_t at = SYN_LOGICAL; at < s.next; at += SYN_NODESIZE) {
		unsigned n, i = 0;

		syn_get(&s, at, 0, block);
		n = le32_get(*(const le32 *)(block + 96));
		while (!block[100] && i < n && n < 100 && block[HEADER_BYTES + 25 * i + 8] >= lowest &&
		       block[HEADER_BYTES + 25 * i + 8] <= highest)
			i++;
		if (block[100] || i < n || !n)
			continue;
		*inode = le64_get(*(const le64 *)(block + HEADER_BYTES + 25 * (n - 1)));
		if (*inode < DIR)
			continue;
		block[SYN_NODESIZE - 1] ^= 1;
		for (unsigned copy = 0; copy < 2; copy++)
			syn_put(&s, at, copy, block, false);
		lost += n;
		if (!all)
			break;
	}
	assert_true(lost);
	return lost;
}

static void make_names(uint64_t size)
{
	char name[80];

	hostile_init(&h);
	hostile_inode(&h, 256, S_IFDIR | 0755, 1, 0);
	hostile_inode(&h, DIR, S_IFDIR | 0755, 1, size);
	hostile_name(&h, 256, 2, "dir", DIR, FT_DIR);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), NAME, i);
		hostile_inode(&h, DIR + 1 + i, S_IFREG | 0644, 1, 0);
		hostile_name(&h, DIR, 2 + i, name, DIR + 1 + i, FT_REG);
	}
	hostile_create(&h, &s);
}

/* With a cache this small, every read of a block allocates. */
static struct btrkit_fs *open_without_cache(void)
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_fs *fs = NULL;

	how.cache_bytes = 1;
	assert_int_equal(syn_open(&s, &how, &fs, NULL), 0);
	return fs;
}

static struct btrkit_fs *open_with_names(uint8_t type, uint64_t size, unsigned *lost)
{
	uint64_t inode;

	make_names(size);
	*lost = lose_leaf(type, type, false, &inode);
	return open_without_cache();
}

static int count(void *ctx, const struct btrkit_dir_entry *e)
{
	(void)e;
	++*(unsigned *)ctx;
	return 0;
}

static int pass(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	(void)what;
	return 0;
}

static void a_single_step_needs_its_item(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	unsigned lost, refused = 0;
	struct btrkit_fs *fs = open_with_names(KEY_DIR_ITEM, 0, &lost);
	(void)state;

	for (unsigned i = 0; i < NAMES; i++) {
		struct inode_place at = { .inode = DIR };
		struct btrkit_inode found;
		char path[80];
		int ret;

		snprintf(path, sizeof(path), "dir/" NAME, i);
		assert_int_equal(btrkit_inode_find(fs, 5, path, &found, &err), 0);
		assert_int_equal(found.inode, DIR + 1 + i);
		assert_int_equal(fs_find_root(fs, 5, &at.root, NULL, &err), 0);
		ret = path_step(fs, &at, path + 4, strlen(path + 4), &err);
		assert_true(!ret || ret == -EUCLEAN);
		refused += !!ret;
	}
	assert_int_equal(refused, lost);
	btrkit_fs_close(fs);
	hostile_free(&h);
}

/* Each allocation fails in turn while the names of the directory are listed, of which the size is right. */
static void list_without_memory(struct btrkit_fs *fs, unsigned lost)
{
	unsigned names = 0;
	uint64_t needed;

	memory_count(MEMORY_SUFFICES, false);
	assert_int_equal(btrkit_inode_entries_around(fs, 5, DIR, count, pass, &names, NULL), 0);
	needed = memory_end();
	assert_int_equal(names, NAMES);
	printf("%llu allocations failed in turn, %u items lost\n", (unsigned long long)needed, lost);
	assert_true(needed > lost);
	for (uint64_t at = 0; at < 2 * needed; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		int ret;

		names = 0;
		memory_count(at / 2, at % 2);
		ret = btrkit_inode_entries_around(fs, 5, DIR, count, pass, &names, &err);
		memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret, err.message);
		if (!ret && names != NAMES)
			fail_msg("allocation %llu: %u names", (unsigned long long)at / 2, names);
	}
}

#define SIZE (2 * NAMES * (sizeof(NAME) - 3))

static void allocations_fail_in_turn(void **state)
{
	unsigned lost;
	struct btrkit_fs *fs = open_with_names(KEY_DIR_INDEX, SIZE, &lost);
	(void)state;

	list_without_memory(fs, lost);
	btrkit_fs_close(fs);
	hostile_free(&h);
}

static void allocations_fail_without_both(void **state)
{
	struct btrkit_fs *fs;
	uint64_t inode;
	unsigned lost;
	(void)state;

	make_names(SIZE);
	lose_leaf(KEY_DIR_ITEM, KEY_DIR_ITEM, true, &inode);
	lost = lose_leaf(KEY_DIR_INDEX, KEY_DIR_INDEX, true, &inode);
	fs = open_without_cache();
	list_without_memory(fs, lost);
	btrkit_fs_close(fs);
	hostile_free(&h);
}

static int check_path(void *ctx, const char *path, size_t len)
{
	char name[80];

	snprintf(name, sizeof(name), "dir/" NAME, *(unsigned *)ctx);
	assert_int_equal(len, strlen(name));
	assert_memory_equal(path, name, len);
	*(unsigned *)ctx += NAMES;
	return 0;
}

static void paths_without_memory(void **state)
{
	struct btrkit_fs *fs;
	uint64_t needed, inode;
	unsigned n;
	(void)state;

	make_names(0);
	lose_leaf(KEY_INODE_ITEM, KEY_INODE_EXTREF, false, &inode);
	fs = open_without_cache();
	n = (unsigned)(inode - DIR - 1);
	memory_count(MEMORY_SUFFICES, false);
	assert_int_equal(btrkit_inode_paths_around(fs, 5, inode, check_path, pass, &n, NULL), 0);
	needed = memory_end();
	assert_int_equal(n, inode - DIR - 1 + NAMES);
	assert_int_not_equal(btrkit_inode_paths(fs, 5, inode, check_path, &n, NULL), 0);
	for (uint64_t at = 0; at < 2 * needed; at++) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		int ret;

		n = (unsigned)(inode - DIR - 1);
		memory_count(at / 2, at % 2);
		ret = btrkit_inode_paths_around(fs, 5, inode, check_path, pass, &n, &err);
		memory_end();
		if (ret && (ret != -ENOMEM || err.code != BTRKIT_NO_MEMORY))
			fail_msg("allocation %llu: %d: %s", (unsigned long long)at / 2, ret, err.message);
		if (!ret && n != inode - DIR - 1 + NAMES)
			fail_msg("allocation %llu: no path", (unsigned long long)at / 2);
	}
	btrkit_fs_close(fs);
	hostile_free(&h);
}

static char told[sizeof(((struct btrkit_error *)0)->message)];

static int keep(void *ctx, const struct btrkit_error *what)
{
	(void)ctx;
	snprintf(told, sizeof(told), "%s", what->message);
	return 0;
}

/* The size is only compared, whatever it is. */
static void sizes_are_compared(void **state)
{
	const uint64_t right = 2 * NAMES * (sizeof(NAME) - 3);
	const struct {
		uint64_t size;
		const char *says;
	} cases[] = {
		{ right, "; none is missing" },
		{ right + 10, "; names of 5 bytes are still missing" },
		{ UINT64_MAX - 1, " bytes are still missing" },
		{ UINT64_MAX, "; the directory's size does not tell how many are missing" },
		{ right - 2, "; the directory's size does not tell how many are missing" },
		{ 0, "; the directory's size does not tell how many are missing" },
	};
	(void)state;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned lost, names = 0;
		struct btrkit_fs *fs = open_with_names(KEY_DIR_INDEX, cases[i].size, &lost);

		assert_int_equal(btrkit_inode_entries_around(fs, 5, DIR, count, keep, &names, NULL), 0);
		assert_int_equal(names, NAMES);
		if (strlen(told) < strlen(cases[i].says) ||
		    strcmp(told + strlen(told) - strlen(cases[i].says), cases[i].says))
			fail_msg("%u: %s", i, told);
		btrkit_fs_close(fs);
		hostile_free(&h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_step_needs_its_item),
		cmocka_unit_test(allocations_fail_in_turn),
		cmocka_unit_test(allocations_fail_without_both),
		cmocka_unit_test(sizes_are_compared),
		cmocka_unit_test(paths_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
