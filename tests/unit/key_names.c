// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/unit.h"

#include "lib/format/key_names.h"

static char out[1024];
static size_t out_len;

static int collect(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	if (len >= sizeof(out) - out_len)
		return -ENOSPC;
	memcpy(out + out_len, data, len);
	out_len += len;
	out[out_len] = '\0';
	return 0;
}

static const char *key_as(enum emit_form form, struct btrkit_key key)
{
	struct emit e;

	out_len = 0;
	assert_int_equal(emit_init(&e, form, collect, NULL), 0);
	emit_object(&e, NULL);
	key_emit(&e, "key", "", &key);
	emit_object_end(&e);
	assert_int_equal(emit_finish(&e), 0);
	return out;
}

static void keys_read_as_in_dump_tree(void **state)
{
	static const struct {
		struct btrkit_key key;
		const char *text;
	} rows[] = {
		{ { 256, KEY_INODE_ITEM, 0 }, "key (256 INODE_ITEM 0)" },
		{ { OID_EXTENT_TREE, KEY_ROOT_ITEM, 0 }, "key (EXTENT_TREE ROOT_ITEM 0)" },
		{ { OID_TREE_RELOC, KEY_ROOT_ITEM, OID_FS_TREE }, "key (TREE_RELOC ROOT_ITEM FS_TREE)" },
		{ { 257, KEY_ROOT_ITEM, UINT64_MAX }, "key (257 ROOT_ITEM 18446744073709551615)" },
		{ { OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, 65536 }, "key (FIRST_CHUNK_TREE CHUNK_ITEM 65536)" },
		{ { (uint64_t)-255, 77, UINT64_MAX }, "key (MULTIPLE UNKNOWN.77 -1)" },
		{ { OID_DATA_RELOC_TREE, KEY_DIR_ITEM, 7 }, "key (DATA_RELOC_TREE DIR_ITEM 7)" },
		{ { OID_REMAP_TREE, 2, 0 }, "key (REMAP_TREE UNKNOWN.2 0)" },
		{ { 14, KEY_INODE_ITEM, 0 }, "key (14 INODE_ITEM 0)" },
		{ { (uint64_t)-1, KEY_INODE_ITEM, 0 }, "key (-1 INODE_ITEM 0)" },
		{ { (uint64_t)-2, KEY_INODE_ITEM, 0 }, "key (18446744073709551614 INODE_ITEM 0)" },
		{ { 0, 0, 0 }, "key (0 UNKNOWN.0 0)" },
		{ { OID_FREE_SPACE, 0, 13631488 }, "key (FREE_SPACE UNTYPED 13631488)" },
		{ { 1, KEY_DEV_ITEM, 1 }, "key (DEV_ITEMS DEV_ITEM 1)" },
		{ { 1, KEY_DEV_EXTENT, 1048576 }, "key (1 DEV_EXTENT 1048576)" },
		{ { 0, KEY_PERSISTENT_ITEM, 1 }, "key (DEV_STATS PERSISTENT_ITEM 1)" },
		{ { 1, KEY_PERSISTENT_ITEM, 1 }, "key (1 PERSISTENT_ITEM 1)" },
		{ { 0, KEY_QGROUP_INFO, 1ull << 48 | 5 }, "key (0 QGROUP_INFO 1/5)" },
		{ { 256, KEY_QGROUP_RELATION, 1ull << 48 }, "key (0/256 QGROUP_RELATION 1/0)" },
		{ { 1, KEY_UUID_SUBVOL, 0xab }, "key (0x0000000000000001 UUID_KEY_SUBVOL 0x00000000000000ab)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(key_as(EMIT_TEXT, rows[i].key), rows[i].text);
}

static void keys_are_numbers_in_json(void **state)
{
	(void)state;
	assert_string_equal(key_as(EMIT_JSON, KEY(OID_EXTENT_TREE, KEY_ROOT_ITEM, 0)),
			    "{\"key\":{\"objectid\":2,\"type\":132,\"type_name\":\"ROOT_ITEM\",\"offset\":0}}\n");
	assert_string_equal(key_as(EMIT_JSON, KEY(1, 77, UINT64_MAX)),
			    "{\"key\":{\"objectid\":1,\"type\":77,\"type_name\":\"UNKNOWN.77\","
			    "\"offset\":18446744073709551615}}\n");
}

static void item_line_reads_as_in_dump_tree(void **state)
{
	struct emit e;

	(void)state;
	out_len = 0;
	assert_int_equal(emit_init(&e, EMIT_TEXT, collect, NULL), 0);
	item_line_emit(&e, 3, &KEY(257, KEY_EXTENT_DATA, 4096), 15000, 53);
	assert_int_equal(emit_finish(&e), 0);
	assert_string_equal(out, "\titem 3 key (257 EXTENT_DATA 4096) itemoff 15000 itemsize 53\n");
	out_len = 0;
	assert_int_equal(emit_init(&e, EMIT_JSON, collect, NULL), 0);
	emit_object(&e, NULL);
	item_line_emit(&e, 3, &KEY(257, KEY_EXTENT_DATA, 4096), 15000, 53);
	emit_object_end(&e);
	assert_int_equal(emit_finish(&e), 0);
	assert_string_equal(out, "{\"slot\":3,\"key\":{\"objectid\":257,\"type\":108,\"type_name\":\"EXTENT_DATA\","
				 "\"offset\":4096},\"offset\":15000,\"size\":53}\n");
}

static void block_group_flags_name_type_and_profile(void **state)
{
	static const struct {
		uint64_t flags;
		const char *text;
	} rows[] = {
		{ BG_DATA, "DATA|single" },
		{ BG_METADATA | BG_DUP, "METADATA|DUP" },
		{ BG_DATA | BG_METADATA | BG_RAID1C4, "DATA|METADATA|RAID1C4" },
		{ BG_SYSTEM | BG_RAID1 | BG_RAID10, "SYSTEM|RAID10" },
		{ 0, "|single" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct emit e;

		out_len = 0;
		assert_int_equal(emit_init(&e, EMIT_TEXT, collect, NULL), 0);
		bg_flags_emit(&e, "type", "", rows[i].flags);
		assert_int_equal(emit_finish(&e), 0);
		assert_string_equal(out, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_read_as_in_dump_tree),
		cmocka_unit_test(keys_are_numbers_in_json),
		cmocka_unit_test(item_line_reads_as_in_dump_tree),
		cmocka_unit_test(block_group_flags_name_type_and_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
