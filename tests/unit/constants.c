// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the library says without a filesystem: its version, and names of what it knows. */
#include "tests/unit/unit.h"

#include <btrkit/btrkit.h>

static void the_build_is_described(void **state)
{
	const bool lzo = strstr(btrkit_build_features(), "+lzo");
	(void)state;

	assert_string_equal(btrkit_version(), BTRKIT_VERSION);
	assert_string_equal(btrkit_build_license(), lzo ? "GPL-2.0-or-later" : "LGPL-2.1-or-later");
}

/* Every cause has a name of its own, in lower case, and nothing else has one. */
static void causes_have_names(void **state)
{
	(void)state;
	assert_string_equal(btrkit_cause_name(BTRKIT_CAUSE_OTHER), "other");
	assert_string_equal(btrkit_cause_name(BTRKIT_CAUSE_DEVICE_MISSING), "device-missing");
	assert_string_equal(btrkit_cause_name(BTRKIT_CAUSE_FIRST_KEY), "first-key");
	for (int i = BTRKIT_CAUSE_OTHER; i <= BTRKIT_CAUSE_FIRST_KEY; i++) {
		const char *name = btrkit_cause_name((enum btrkit_cause)i);

		assert_non_null(name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
		for (int k = BTRKIT_CAUSE_OTHER; k < i; k++)
			assert_string_not_equal(name, btrkit_cause_name((enum btrkit_cause)k));
	}
	assert_null(btrkit_cause_name((enum btrkit_cause)(BTRKIT_CAUSE_FIRST_KEY + 1)));
	assert_null(btrkit_cause_name((enum btrkit_cause)-1));
}

static void superblocks_are_where_linux_has_them(void **state)
{
	(void)state;
	assert_int_equal(btrkit_super_offset(0), 65536);
	assert_int_equal(btrkit_super_offset(1), 64ull << 20);
	assert_int_equal(btrkit_super_offset(2), 256ull << 30);
	assert_int_equal(btrkit_super_offset(3), UINT64_MAX);
	assert_int_equal(btrkit_super_offset(UINT_MAX), UINT64_MAX);
}

/* The objectids are those of the format. */
static void trees_have_names(void **state)
{
	static const struct {
		const char *name;
		uint64_t id;
	} trees[] = {
		{ "root", 1 },		{ "extent", 2 },	       { "EXTENT_TREE", 2 }, { "Extent_Tree", 2 },
		{ "chunk", 3 },		{ "fs", 5 },		       { "csum", 7 },	     { "uuid", 9 },
		{ "256", 256 },		{ "18446744073709551615", -1 }, { "0x100", 256 },    { "block-group", 11 },
		{ "free-space", 10 },
	};
	static const char *const no_trees[] = { "", "extent tree", "extents", "-", "12x", "18446744073709551616" };
	(void)state;

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		uint64_t id = 0;

		if (btrkit_tree_parse(trees[i].name, &id))
			fail_msg("%s is not known", trees[i].name);
		assert_int_equal(id, trees[i].id);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_trees); i++) {
		uint64_t id = 77;

		if (btrkit_tree_parse(no_trees[i], &id) != -ENOENT)
			fail_msg("\"%s\" is a tree", no_trees[i]);
		assert_int_equal(id, 77);
	}
}

/* Each list of names selects members, so each path occurs once, after those that it sorts behind. */
static void members_of_the_dump_are_listed(void **state)
{
	const char *const *fields;
	bool has_key = false;
	size_t n = 0;
	(void)state;

	fields = btrkit_dump_fields(&n);
	assert_true(n > 100);
	for (size_t i = 0; i < n; i++) {
		assert_true(!i || strcmp(fields[i - 1], fields[i]) < 0);
		has_key |= !strcmp(fields[i], "key.objectid");
	}
	assert_true(has_key);
}

/* Only files of filesystems that support it can share blocks. The reason is told, and nothing is written. */
static void memory_shares_no_blocks(void **state)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io;
	(void)state;

	assert_int_equal(btrkit_io_memory(65536, &io, NULL), 0);
	assert_int_equal(btrkit_io_clone(io, 0, -1, 0, 4096, &err), -EOPNOTSUPP);
	assert_int_equal(btrkit_io_clone(io, 61440, -1, 0, 8192, &err), -ENOSPC);
	assert_int_equal(btrkit_io_clone(io, UINT64_MAX, -1, 0, 2, &err), -ENOSPC);
	btrkit_io_close(io);
	assert_int_equal(btrkit_io_open("/proc/self/exe", BTRKIT_IO_READ, &io, NULL), 0);
	assert_int_equal(btrkit_io_clone(io, 0, -1, 0, 4096, &err), -EROFS);
	btrkit_io_close(io);
}

/* No device has this fsid. The name is terminated within its size, also if that is 0. */
static void no_device_has_an_unknown_fsid(void **state)
{
	static const uint8_t fsid[16] = { 0xb7, 0x4e, 0x21, 0x90, 0x5d, 0x0c, 0x4a, 0x66,
					  0x93, 0x1b, 0xe2, 0x58, 0x7f, 0xaa, 0x03, 0xd1 };
	char name[8] = "unknown";
	(void)state;

	assert_int_equal(btrkit_io_find_fsid(fsid, NULL, 0, name, sizeof(name), NULL), 0);
	assert_string_equal(name, "");
	name[0] = 'x';
	assert_int_equal(btrkit_io_find_fsid(fsid, NULL, 0, name, 0, NULL), 0);
	assert_int_equal(name[0], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_build_is_described),
		cmocka_unit_test(causes_have_names),
		cmocka_unit_test(superblocks_are_where_linux_has_them),
		cmocka_unit_test(trees_have_names),
		cmocka_unit_test(members_of_the_dump_are_listed),
		cmocka_unit_test(memory_shares_no_blocks),
		cmocka_unit_test(no_device_has_an_unknown_fsid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
