/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_ITEMS_TREES_H
#define BTRKIT_TESTS_ITEMS_TREES_H

/* Items of the root tree and the extent tree. */

#include "lib/format/items/extent.h"
#include "lib/format/items/root.h"
#include "lib/format/items/space_cache.h"
#include "tests/unit/items_samples.h"

static const struct disk_root_item root_long = {
	.generation = LE64(10), .root_dirid = LE64(256), .bytenr = LE64(30408704), .bytes_used = LE64(16384),
	.last_snapshot = LE64(8), .flags = LE64(1), .refs = LE32(1), .drop_progress = DISK_KEY(257, KEY_INODE_REF, 256),
	.drop_level = 1, .level = 2, .generation_v2 = LE64(10), .uuid = UUID_OF(0x11), .parent_uuid = UUID_OF(0x22),
	.ctransid = LE64(9), .otransid = LE64(7), .ctime = DISK_TIME(1, 2),
};

/* As written before Linux 3.6. */
static const struct {
	uint8_t bytes[ROOT_ITEM_SHORT];
} root_short = { { [160] = 5, [238] = 1 } };

static const struct {
	struct disk_root_ref ref;
	char name[4];
} root_ref = { { LE64(256), LE64(2), LE16(4) }, { 's', 'n', ' ', '1' } };

struct inline_u64 {
	uint8_t type;
	le64 offset;
};

struct inline_data_ref {
	uint8_t type;
	struct disk_extent_data_ref ref;
};

struct inline_shared_data {
	uint8_t type;
	le64 parent;
	le32 count;
};

static const struct data_extent {
	struct disk_extent_item item;
	struct inline_u64 owner;
	struct inline_data_ref ref;
	struct inline_shared_data shared;
} data_extent = {
	{ LE64(6), LE64(9), LE64(EXTENT_FLAG_DATA) },
	{ KEY_EXTENT_OWNER_REF, LE64(256) },
	{ KEY_EXTENT_DATA_REF, { LE64(5), LE64(257), LE64(0), LE32(2) } },
	{ KEY_SHARED_DATA_REF, LE64(30408704), LE32(3) },
};

/* Two references of the same type; the larger parent comes first. */
static const struct tree_extent {
	struct disk_extent_item item;
	struct disk_tree_block_info info;
	struct inline_u64 first, second;
} tree_extent = {
	{ LE64(2), LE64(9), LE64(EXTENT_FLAG_TREE_BLOCK | EXTENT_FLAG_FULL_BACKREF) },
	{ DISK_KEY(257, KEY_INODE_ITEM, 0), 1 },
	{ KEY_SHARED_BLOCK_REF, LE64(8192) },
	{ KEY_SHARED_BLOCK_REF, LE64(4096) },
};

static const struct skinny_extent {
	struct disk_extent_item item;
	struct inline_u64 ref;
} skinny_extent = { { LE64(1), LE64(9), LE64(EXTENT_FLAG_TREE_BLOCK) }, { KEY_TREE_BLOCK_REF, LE64(5) } };

static const struct disk_extent_data_ref data_ref = { LE64(OID_DATA_RELOC_TREE), LE64(257), LE64(4096), LE32(3) };
static const le32 shared_count = LE32(4);
static const le64 owner_root = LE64(256);

static const struct disk_space_cache space_cache = {
	DISK_KEY(258, KEY_INODE_ITEM, 0), LE64(9), LE64(3), LE64(1),
};

#define ROOT(member, v) FIELD(disk_root_item, member, v)

static const struct sample tree_samples[] = {
	{ { 256, KEY_ROOT_ITEM, 0 }, DATA(root_long),
	  .text = "\t\tgeneration 10 root_dirid 256 bytenr 30408704 byte_limit 0 bytes_used 16384\n"
		  "\t\tlast_snapshot 8 flags 0x1(RDONLY) refs 1\n"
		  "\t\tdrop_progress key (257 INODE_REF 256) drop_level 1\n\t\tlevel 2 generation_v2 10\n"
		  "\t\tuuid 11111111-1111-1111-1111-111111111111\n"
		  "\t\tparent_uuid 22222222-2222-2222-2222-222222222222\n"
		  "\t\treceived_uuid 00000000-0000-0000-0000-000000000000\n"
		  "\t\tctransid 9 otransid 7 stransid 0 rtransid 0\n"
		  "\t\tctime 1.2 (1970-01-01 00:00:01)\n\t\totime 0.0 (1970-01-01 00:00:00)\n"
		  "\t\tstime 0.0 (1970-01-01 00:00:00)\n\t\trtime 0.0 (1970-01-01 00:00:00)\n",
	  .bad = BAD(SIZE(238), SIZE(240), OBJECTID(0), ROOT(generation, GENERATION + 2),
		     ROOT(generation_v2, GENERATION + 2), ROOT(last_snapshot, GENERATION + 2), ROOT(bytenr, 512),
		     ROOT(level, 8), ROOT(drop_level, 8), ROOT(flags, 2)) },
	{ { OID_TREE_RELOC, KEY_ROOT_ITEM, 5 }, DATA(root_short),
	  .text = "\t\tgeneration 5 root_dirid 0 bytenr 0 byte_limit 0 bytes_used 0\n"
		  "\t\tlast_snapshot 0 flags 0x0(none) refs 0\n"
		  "\t\tdrop_progress key (0 UNKNOWN.0 0) drop_level 0\n\t\tlevel 1 generation_v2 0\n",
	  .bad = BAD(OFFSET(0), OFFSET(2), OFFSET(1ull << 48)) },
	{ { OID_TREE_RELOC, KEY_ROOT_ITEM, OID_DATA_RELOC_TREE }, DATA(root_short),
	  .text = "\t\tgeneration 5 root_dirid 0 bytenr 0 byte_limit 0 bytes_used 0\n"
		  "\t\tlast_snapshot 0 flags 0x0(none) refs 0\n"
		  "\t\tdrop_progress key (0 UNKNOWN.0 0) drop_level 0\n\t\tlevel 1 generation_v2 0\n",
	  .bad = BAD(OFFSET(7)) },
	{ { 5, KEY_ROOT_REF, 256 }, DATA(root_ref), .text = "\t\troot ref key dirid 256 sequence 2 name sn 1\n",
	  .json = "\"dirid\":256,\"sequence\":2,\"name_len\":4,\"name\":\"sn 1\"",
	  .bad = BAD(SIZE(17), FIELD(disk_root_ref, name_len, 5), FIELD(disk_root_ref, name_len, 3)) },
	{ { 256, KEY_ROOT_BACKREF, 5 }, DATA(root_ref),
	  .text = "\t\troot backref key dirid 256 sequence 2 name sn 1\n",
	  .bad = BAD(SIZE(17), FIELD(disk_root_ref, name_len, 0)) },
	{ { 13631488, KEY_EXTENT_ITEM, 8192 }, DATA(data_extent),
	  .text = "\t\trefs 6 gen 9 flags DATA\n\t\t(172 0x100) extent owner root 256\n"
		  "\t\t(178 0xdfb591fa80d95ea) extent data backref root FS_TREE objectid 257 offset 0 count 2\n"
		  "\t\t(184 0x1d00000) shared data backref parent 30408704 count 3\n",
	  .json = "\"refs\":6,\"generation\":9,\"flags\":1,\"flags_names\":[\"DATA\"],\"inline_refs\":["
		  "{\"type\":172,\"type_name\":\"EXTENT_OWNER_REF\",\"sequence\":256,\"root\":256},"
		  "{\"type\":178,\"type_name\":\"EXTENT_DATA_REF\",\"sequence\":1007496934145758698,"
		  "\"root\":5,\"objectid\":257,\"offset\":0,\"count\":2},"
		  "{\"type\":184,\"type_name\":\"SHARED_DATA_REF\",\"sequence\":30408704,"
		  "\"parent\":30408704,\"count\":3}]",
	  .bad = BAD(SIZE(23), SIZE(74), OBJECTID(512), OFFSET(512), FIELD_NAMED("refs", data_extent, item.refs, 4),
		     FIELD_NAMED("generation", data_extent, item.generation, GENERATION + 2),
		     FIELD_NAMED("flags", data_extent, item.flags, 3), FIELD_NAMED("flags", data_extent, item.flags, 0),
		     FIELD_NAMED("flags", data_extent, item.flags, 0x101),
		     FIELD_NAMED("inline_ref.type", data_extent, owner.type, 173),
		     FIELD_NAMED("root", data_extent, ref.ref.root, 2),
		     FIELD_NAMED("objectid", data_extent, ref.ref.objectid, 255),
		     FIELD_NAMED("offset", data_extent, ref.ref.offset, 1),
		     FIELD_NAMED("count", data_extent, ref.ref.count, 0),
		     FIELD_NAMED("parent", data_extent, shared.parent, 1),
		     FIELD_NAMED("count", data_extent, shared.count, 0)) },
	{ { 30408704, KEY_EXTENT_ITEM, 16384 }, DATA(tree_extent),
	  .text = "\t\trefs 2 gen 9 flags TREE_BLOCK|FULL_BACKREF\n"
		  "\t\ttree block key (257 INODE_ITEM 0) level 1\n"
		  "\t\t(182 0x2000) shared block backref parent 8192\n"
		  "\t\t(182 0x1000) shared block backref parent 4096\n",
	  .bad = BAD(OFFSET(4096), SIZE(41), FIELD_NAMED("level", tree_extent, info.level, 8),
		     FIELD_NAMED("parent", tree_extent, first.offset, 1),
		     FIELD_NAMED("inline_ref.order", tree_extent, second.offset, 12288),
		     FIELD_NAMED("inline_ref.order", tree_extent, second.type, KEY_TREE_BLOCK_REF)) },
	{ { 30408704, KEY_METADATA_ITEM, 1 }, DATA(skinny_extent),
	  .text = "\t\trefs 1 gen 9 flags TREE_BLOCK\n\t\ttree block skinny level 1\n"
		  "\t\t(176 0x5) tree block backref root FS_TREE\n",
	  .bad = BAD(OFFSET(8), OBJECTID(512), WITH_INCOMPAT("key.type", INCOMPAT_MIXED_BACKREF),
		     FIELD_NAMED("flags", skinny_extent, item.flags, 1)) },
	{ { 30408704, KEY_TREE_BLOCK_REF, 5 }, "", 0, .text = "\t\ttree block backref\n",
	  .bad = BAD(OBJECTID(512), SIZE(1)) },
	{ { 30408704, KEY_SHARED_BLOCK_REF, 4096 }, "", 0, .text = "\t\tshared block backref\n",
	  .bad = BAD(OBJECTID(512), OFFSET(512), SIZE(1)) },
	{ { 13631488, KEY_EXTENT_DATA_REF, 1 }, DATA(data_ref),
	  .text = "\t\textent data backref root DATA_RELOC_TREE objectid 257 offset 4096 count 3\n",
	  .bad = BAD(SIZE(27), SIZE(29), OBJECTID(512), FIELD(disk_extent_data_ref, root, 7),
		     FIELD(disk_extent_data_ref, objectid, 0), FIELD(disk_extent_data_ref, objectid, OID_FREE_INO),
		     FIELD(disk_extent_data_ref, offset, 8),
		     FIELD(disk_extent_data_ref, count, 0)) },
	{ { 13631488, KEY_SHARED_DATA_REF, 4096 }, DATA(shared_count), .text = "\t\tshared data backref count 4\n",
	  .bad = BAD(SIZE(3), SIZE(5), OBJECTID(512), OFFSET(512), BYTES_AT("count", 0, 4, 0)) },
	{ { 13631488, KEY_EXTENT_OWNER_REF, 0 }, DATA(owner_root), .text = "\t\textent owner root 256\n",
	  .bad = BAD(SIZE(7), SIZE(9), OBJECTID(512)) },
	{ { 13631488, KEY_EXTENT_REF_V0, 0 }, "", 0, .text = "\t\textent ref v0 (deprecated)\n" },
	{ { OID_FREE_SPACE, 0, 13631488 }, DATA(space_cache),
	  .text = "\t\tlocation key (258 INODE_ITEM 0)\n\t\tcache generation 9 entries 3 bitmaps 1\n",
	  .bad = BAD(SIZE(40), BYTES_AT("location", 0, 8, 5), BYTES_AT("location", 8, 1, KEY_ROOT_ITEM)) },
};

#endif
