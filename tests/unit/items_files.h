/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_ITEMS_FILES_H
#define BTRKIT_TESTS_ITEMS_FILES_H

/* Items of subvolumes: inodes, names, extents, logs and verity. */

#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/dir_log.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/files/verity.h"
#include "tests/unit/items_samples.h"

static const struct disk_inode_item inode_file = {
	.generation = LE64(7), .transid = LE64(9), .size = LE64(5000), .nbytes = LE64(8192), .nlink = LE32(2),
	.uid = LE32(1000), .gid = LE32(100), .mode = LE32(0100644), .flags = LE64(0x3), .sequence = LE64(4),
	.atime = DISK_TIME(1700000000, 5), .ctime = DISK_TIME(1700000001, 0), .mtime = DISK_TIME(-5, 7),
};

static const struct disk_inode_item inode_dir = { .nlink = LE32(1), .mode = LE32(040755), .flags = LE64(1ull << 32) };

static const struct {
	struct disk_inode_ref first;
	char first_name[3];
	struct disk_inode_ref second;
	char second_name[4];
} inode_ref_two = {
	{ LE64(2), LE16(3) }, { 'u', 'n', 'o' }, { LE64(3), LE16(4) }, { 'a', ' ', 'b', '\n' },
};

static const struct {
	struct disk_inode_extref ref;
	char name[2];
} inode_extref_one = { { LE64(258), LE64(900), LE16(2) }, { 'x', 'y' } };

static const struct {
	struct disk_dir_item entry;
	char name[7];
} dir_default = {
	{ DISK_KEY(5, KEY_ROOT_ITEM, -1), LE64(0), LE16(0), LE16(7), FT_DIR },
	{ 'd', 'e', 'f', 'a', 'u', 'l', 't' },
};

static const struct {
	struct disk_dir_item entry;
	char name[2];
} dir_index_one = { { DISK_KEY(257, KEY_INODE_ITEM, 0), LE64(8), LE16(0), LE16(2), FT_REG }, { 'x', 'y' } };

static const struct {
	struct disk_dir_item entry;
	char name[16], value[3];
} xattr_selinux = {
	{ DISK_KEY(0, 0, 0), LE64(8), LE16(3), LE16(16), FT_XATTR },
	{ 's', 'e', 'c', 'u', 'r', 'i', 't', 'y', '.', 's', 'e', 'l', 'i', 'n', 'u', 'x' }, { 'v', '\\', 0 },
};

static const struct disk_file_extent extent_regular = {
	.generation = LE64(9), .ram_bytes = LE64(131072), .compression = COMPRESS_ZSTD, .type = FILE_EXTENT_REG,
	.disk_bytenr = LE64(13631488), .disk_num_bytes = LE64(4096), .offset = LE64(8192), .num_bytes = LE64(4096),
};

static const struct disk_file_extent extent_prealloc = {
	.generation = LE64(9), .ram_bytes = LE64(4096), .type = FILE_EXTENT_PREALLOC,
	.disk_bytenr = LE64(13631488), .disk_num_bytes = LE64(4096), .num_bytes = LE64(4096),
};

static const uint8_t extent_inline[FILE_EXTENT_INLINE_START + 5] = { [0] = 9, [8] = 5, [21] = 'h', 'e', 'l', 'l', 'o' };

static const struct disk_verity_desc verity_desc = { .size = LE64(256) };
static const struct disk_dir_log dir_log = { LE64(-1) };

#define INODE(member, v) FIELD(disk_inode_item, member, v)
#define DIR(member, v) FIELD(disk_dir_item, member, v)
#define EXTENT(member, v) FIELD(disk_file_extent, member, v)

static const struct sample file_samples[] = {
	{ { 257, KEY_INODE_ITEM, 0 }, DATA(inode_file),
	  .text = "\t\tgeneration 7 transid 9 size 5000 nbytes 8192\n"
		  "\t\tblock group 0 mode 100644 links 2 uid 1000 gid 100 rdev 0\n"
		  "\t\tsequence 4 flags 0x3(NODATASUM|NODATACOW)\n"
		  "\t\tatime 1700000000.5 (2023-11-14 22:13:20)\n"
		  "\t\tctime 1700000001.0 (2023-11-14 22:13:21)\n"
		  "\t\tmtime 18446744073709551611.7 (1969-12-31 23:59:55)\n"
		  "\t\totime 0.0 (1970-01-01 00:00:00)\n",
	  .json = "\"generation\":7,\"transid\":9,\"size\":5000,\"nbytes\":8192,\"block_group\":0,\"mode\":33188,"
		  "\"nlink\":2,\"uid\":1000,\"gid\":100,\"rdev\":0,\"sequence\":4,\"flags\":3,"
		  "\"flags_names\":[\"NODATASUM\",\"NODATACOW\"],"
		  "\"atime\":{\"sec\":1700000000,\"nsec\":5},\"ctime\":{\"sec\":1700000001,\"nsec\":0},"
		  "\"mtime\":{\"sec\":-5,\"nsec\":7},\"otime\":{\"sec\":0,\"nsec\":0}",
	  .bad = BAD(SIZE(159), SIZE(161), OBJECTID(5), OBJECTID(-1), OFFSET(1), INODE(generation, GENERATION + 2),
		     INODE(transid, GENERATION + 2), INODE(mode, 0644), INODE(mode, 0200100644), INODE(mode, 0150000),
		     INODE(flags, 1 << 12)) },
	{ { 256, KEY_INODE_ITEM, 0 }, DATA(inode_dir),
	  .text = "\t\tgeneration 0 transid 0 size 0 nbytes 0\n"
		  "\t\tblock group 0 mode 40755 links 1 uid 0 gid 0 rdev 0\n"
		  "\t\tsequence 0 flags 0x100000000(UNKNOWN: 0x100000000)\n"
		  "\t\tatime 0.0 (1970-01-01 00:00:00)\n\t\tctime 0.0 (1970-01-01 00:00:00)\n"
		  "\t\tmtime 0.0 (1970-01-01 00:00:00)\n\t\totime 0.0 (1970-01-01 00:00:00)\n",
	  .bad = BAD(INODE(nlink, 2)) },
	{ { 257, KEY_INODE_REF, 256 }, DATA(inode_ref_two),
	  .text = "\t\tindex 2 namelen 3 name: uno\n\t\tindex 3 namelen 4 name: a\\ b\\n\n",
	  .json = "\"names\":[{\"index\":2,\"name_len\":3,\"name\":\"uno\"},"
		  "{\"index\":3,\"name_len\":4,\"name\":\"a b\\u000a\"}]",
	  .bad = BAD(SIZE(10), SIZE(20), BYTES_AT("name_len", 8, 2, 18), BYTES_AT("name_len", 21, 2, 5)) },
	{ { 257, KEY_INODE_EXTREF, 1234 }, DATA(inode_extref_one),
	  .text = "\t\tindex 900 parent 258 namelen 2 name: xy\n",
	  .json = "\"names\":[{\"index\":900,\"parent\":258,\"name_len\":2,\"name\":\"xy\"}]",
	  .bad = BAD(SIZE(17), FIELD(disk_inode_extref, name_len, 3)) },
	{ { 6, KEY_DIR_ITEM, 2378154706 }, DATA(dir_default),
	  .text = "\t\tlocation key (FS_TREE ROOT_ITEM 18446744073709551615) type DIR\n"
		  "\t\ttransid 0 data_len 0 name_len 7\n\t\tname: default\n",
	  .json = "\"entries\":[{\"location\":{\"objectid\":5,\"type\":132,\"type_name\":\"ROOT_ITEM\","
		  "\"offset\":18446744073709551615},\"type\":2,\"type_name\":\"DIR\",\"encrypted\":false,"
		  "\"transid\":0,\"data_len\":0,\"name_len\":7,"
		  "\"name\":\"default\"}]",
	  .bad = BAD(SIZE(29), OFFSET(2378154707), BYTES_AT("location", 0, 8, 7), BYTES_AT("location", 8, 1, 7),
		     BYTES_AT("location", 8, 1, KEY_INODE_ITEM), DIR(type, FT_UNKNOWN), DIR(type, FT_XATTR),
		     DIR(type, FT_XATTR + 1), DIR(name_len, 8), DIR(data_len, 1), SIZE(40),
		     { "name_len", BAD_SIZE, 0, 0, 36 }) },
	{ { 256, KEY_DIR_INDEX, 2 }, DATA(dir_index_one),
	  .text = "\t\tlocation key (257 INODE_ITEM 0) type FILE\n"
		  "\t\ttransid 8 data_len 0 name_len 2\n\t\tname: xy\n",
	  .bad = BAD(SIZE(29), BYTES_AT("location", 0, 8, 5), BYTES_AT("location", 9, 8, 1), DIR(name_len, 3)) },
	{ { 257, KEY_XATTR_ITEM, 3817753667 }, DATA(xattr_selinux),
	  .text = "\t\tlocation key (0 UNKNOWN.0 0) type XATTR\n\t\ttransid 8 data_len 3 name_len 16\n"
		  "\t\tname: security.selinux\n\t\tdata v\\\\\\000\n",
	  .json = "\"entries\":[{\"location\":{\"objectid\":0,\"type\":0,\"type_name\":\"UNKNOWN.0\",\"offset\":0},"
		  "\"type\":8,\"type_name\":\"XATTR\",\"encrypted\":false,\"transid\":8,"
		  "\"data_len\":3,\"name_len\":16,\"name\":\"security.selinux\",\"data\":\"765c00\"}]",
	  .bad = BAD(SIZE(29), OFFSET(1), BYTES_AT("location", 0, 8, 257),
		     FIELD_NAMED("data_len", disk_dir_item, type, FT_REG),
		     DIR(data_len, 4), DIR(name_len, 20)) },
	{ { 257, KEY_EXTENT_DATA, 4096 }, DATA(extent_regular),
	  .text = "\t\tgeneration 9 type 1 (regular)\n\t\textent data disk byte 13631488 nr 4096\n"
		  "\t\textent data offset 8192 nr 4096 ram 131072\n\t\textent compression 3 (zstd)\n"
		  "\t\textent encryption 0\n",
	  .json = "\"generation\":9,\"type\":1,\"type_name\":\"regular\",\"encryption\":0,\"other_encoding\":0,"
		  "\"disk_bytenr\":13631488,\"disk_num_bytes\":4096,\"offset\":8192,"
		  "\"num_bytes\":4096,\"ram_bytes\":131072,\"compression\":3,\"compression_name\":\"zstd\"",
	  .bad = BAD(SIZE(20), SIZE(52), SIZE(54), OFFSET(1), EXTENT(type, 3), EXTENT(compression, 4),
		     EXTENT(encryption, 1), EXTENT(ram_bytes, 1), EXTENT(disk_bytenr, 512), EXTENT(disk_num_bytes, 1),
		     EXTENT(offset, 1), EXTENT(num_bytes, 4097), EXTENT(num_bytes, -4096)) },
	{ { 257, KEY_EXTENT_DATA, 0 }, DATA(extent_prealloc),
	  .text = "\t\tgeneration 9 type 2 (prealloc)\n\t\tprealloc data disk byte 13631488 nr 4096\n"
		  "\t\tprealloc data offset 0 nr 4096\n",
	  .bad = BAD(EXTENT(num_bytes, 1)) },
	{ { 257, KEY_EXTENT_DATA, 0 }, DATA(extent_inline),
	  .text = "\t\tgeneration 9 type 0 (inline)\n"
		  "\t\tinline extent data size 5 ram_bytes 5 compression 0 (none) encryption 0\n",
	  .json = "\"generation\":9,\"type\":0,\"type_name\":\"inline\",\"encryption\":0,\"other_encoding\":0,"
		  "\"inline_size\":5,\"ram_bytes\":5,\"compression\":0,\"compression_name\":\"none\","
		  "\"inline_data\":\"68656c6c6f\"",
	  .bad = BAD(OFFSET(4096), EXTENT(ram_bytes, 6)) },
	{ { 257, KEY_VERITY_DESC_ITEM, 0 }, DATA(verity_desc), .text = "",
	  .json = "\"size\":256,\"encryption\":0,\"data\":\"00010000000000000000000000000000000000000000000000\"",
	  .bad = BAD(SIZE(24), FIELD(disk_verity_desc, size, 1ull << 31), FIELD(disk_verity_desc, encryption, 1),
		     BYTES_AT("reserved", 8, 8, 1), BYTES_AT("reserved", 16, 8, 1)) },
	{ { 257, KEY_VERITY_DESC_ITEM, 1 }, "\1\1", 2, .text = "", .json = "\"data\":\"0101\"" },
	{ { 257, KEY_VERITY_MERKLE_ITEM, 0 }, "abcd", 4, .text = "", .json = "\"data\":\"61626364\"" },
	{ { OID_ORPHAN, KEY_ORPHAN_ITEM, 257 }, "", 0, .text = "\t\torphan item\n" },
	{ { 256, KEY_DIR_LOG_ITEM, 1 }, DATA(dir_log), .text = "\t\tdir log end 18446744073709551615\n",
	  .bad = BAD(SIZE(7), SIZE(9)) },
	{ { 256, KEY_DIR_LOG_INDEX, 1 }, DATA(dir_log), .text = "\t\tdir log end 18446744073709551615\n",
	  .bad = BAD(SIZE(7), SIZE(9)) },
};

#endif
