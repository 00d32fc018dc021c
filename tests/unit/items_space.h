/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_ITEMS_SPACE_H
#define BTRKIT_TESTS_ITEMS_SPACE_H

/* Items of chunks, devices, checksums, free space, quotas and unfinished operations. */

#include "lib/format/items/devices/balance.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/format/items/devices/dev_stats.h"
#include "lib/format/items/free_space.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/devices/raid_stripe.h"
#include "lib/format/items/devices/remap.h"
#include "tests/unit/items_samples.h"

static const struct chunk_dup {
	struct disk_chunk chunk;
	struct disk_stripe stripes[2];
} chunk_dup = {
	{ LE64(8388608), LE64(2), LE64(65536), LE64(BG_METADATA | BG_DUP), LE32(65536), LE32(65536), LE32(4096),
	  LE16(2), LE16(1) },
	{ { LE64(1), LE64(22020096), UUID_OF(0xab) }, { LE64(1), LE64(30408704), UUID_OF(0xab) } },
};

static const struct chunk_raid10 {
	struct disk_chunk chunk;
	struct disk_stripe stripes[4];
} chunk_raid10 = {
	{ LE64(8388608), LE64(2), LE64(65536), LE64(BG_DATA | BG_RAID10), LE32(0), LE32(0), LE32(4096),
	  LE16(4), LE16(2) },
	{ { LE64(1), LE64(0), { 0 } } },
};

/* A chunk that was remapped entirely. */
static const struct disk_chunk chunk_remapped = {
	LE64(8388608), LE64(2), LE64(65536), LE64(BG_METADATA | BG_DUP | BG_REMAPPED), LE32(0), LE32(0), LE32(4096),
	LE16(0), LE16(1),
};

static const struct chunk_one {
	struct disk_chunk chunk;
	struct disk_stripe stripe;
} chunk_single = {
	{ LE64(8388608), LE64(2), LE64(65536), LE64(BG_DATA), LE32(0), LE32(0), LE32(4096), LE16(1), LE16(1) },
	{ LE64(1), LE64(0), { 0 } },
};

static const struct disk_block_group block_group = { LE64(4096), LE64(256), LE64(BG_DATA) };
static const struct disk_block_group_remap block_group_remap = {
	{ LE64(0), LE64(256), LE64(BG_METADATA_REMAP | BG_DUP) }, LE64(7), LE32(8),
};
static const struct disk_free_space_info free_space_info = { LE32(3), LE32(1) };

static const struct disk_dev_item dev_item = {
	.devid = LE64(1), .total_bytes = LE64(1 << 30), .bytes_used = LE64(1 << 20), .io_align = LE32(4096),
	.io_width = LE32(4096), .sector_size = LE32(4096), .uuid = UUID_OF(0xab), .fsid = UUID_OF(0xcd),
};

static const struct disk_dev_extent dev_extent = { LE64(3), LE64(256), LE64(13631488), LE64(8388608), { 0 } };

static const struct disk_raid_stride strides[2] = { { LE64(1), LE64(4096) }, { LE64(2), LE64(8192) } };
static const struct disk_remap remap = { LE64(65536) };

static const struct disk_qgroup_status qgroup_status = { LE64(1), LE64(9), LE64(0x1c), LE64(0), LE64(8) };
static const struct disk_qgroup_info qgroup_info = { LE64(9), LE64(1), LE64(2), LE64(3), LE64(4) };
static const struct disk_qgroup_limit qgroup_limit = { LE64(0x11), LE64(-1), LE64(2), LE64(3), LE64(4) };

static const struct disk_balance balance = { .flags = LE64(6), .meta = { .devid = LE64(1), .usage_min = LE32(5) } };
static const struct disk_dev_stats dev_stats = { { LE64(1), LE64(2), LE64(3), LE64(4), LE64(5) } };
static const le64 dev_stats_longer[6] = { [4] = LE64(5), [5] = LE64(6) };
static const struct disk_dev_replace dev_replace = {
	.src_devid = LE64(2), .cursor_left = LE64(4096), .cursor_right = LE64(8192), .mode = LE64(1), .state = LE64(7),
	.time_started = LE64(60), .time_stopped = LE64(120), .num_write_errors = LE64(1),
};
static const le64 subvolumes[2] = { LE64(256), LE64(257) };

#define BALANCE_ARGS(devid, usage) \
	"\t\tprofiles 0 devid " devid " target 0 flags 0\n\t\tusage_min " usage " usage_max 0 pstart 0 pend 0\n" \
	"\t\tvstart 0 vend 0 limit_min 0 limit_max 0\n\t\tstripes_min 0 stripes_max 0\n"
#define CHUNK(member, v) FIELD(disk_chunk, member, v)
#define BG(member, v) FIELD(disk_block_group, member, v)
#define DEV_EXTENT(member, v) FIELD(disk_dev_extent, member, v)

static const struct sample space_samples[] = {
	{ { 256, KEY_CHUNK_ITEM, 30408704 }, DATA(chunk_dup),
	  .text = "\t\tlength 8388608 owner 2 stripe_len 65536 type METADATA|DUP\n"
		  "\t\tio_align 65536 io_width 65536 sector_size 4096\n\t\tnum_stripes 2 sub_stripes 1\n"
		  "\t\t\tstripe 0 devid 1 offset 22020096\n\t\t\tdev_uuid abababab-abab-abab-abab-abababababab\n"
		  "\t\t\tstripe 1 devid 1 offset 30408704\n\t\t\tdev_uuid abababab-abab-abab-abab-abababababab\n",
	  .json = "\"length\":8388608,\"owner\":2,\"stripe_len\":65536,"
		  "\"type\":36,\"type_names\":[\"METADATA\",\"DUP\"],"
		  "\"io_align\":65536,"
		  "\"io_width\":65536,\"sector_size\":4096,\"num_stripes\":2,\"sub_stripes\":1,\"stripes\":["
		  "{\"devid\":1,\"offset\":22020096,\"dev_uuid\":\"abababab-abab-abab-abab-abababababab\"},"
		  "{\"devid\":1,\"offset\":30408704,\"dev_uuid\":\"abababab-abab-abab-abab-abababababab\"}]",
	  .bad = BAD(SIZE(47), SIZE(111), SIZE(113), OFFSET(512), CHUNK(length, 0), CHUNK(length, 512),
		     CHUNK(length, 0xffffffffull << 16), CHUNK(length, -4096), CHUNK(stripe_len, 4096),
		     CHUNK(sector_size, 512), CHUNK(type, BG_METADATA | BG_DUP | BG_RAID1), CHUNK(type, BG_DUP),
		     CHUNK(type, BG_METADATA | BG_SYSTEM | BG_DUP), CHUNK(type, BG_METADATA | BG_DATA | BG_DUP),
		     CHUNK(type, BG_METADATA | BG_DUP | 1 << 20), CHUNK(type, BG_METADATA | BG_DUP | BG_REMAPPED),
		     FIELD_NAMED("num_stripes", disk_chunk, type, BG_METADATA),
		     FIELD_NAMED("num_stripes", disk_chunk, type, BG_METADATA | BG_RAID6)) },
	{ { 256, KEY_CHUNK_ITEM, 30408704 }, DATA(chunk_raid10),
	  .bad = BAD(CHUNK(sub_stripes, 1), FIELD_NAMED("num_stripes", disk_chunk, type, BG_DATA | BG_RAID1)) },
	{ { 256, KEY_CHUNK_ITEM, 30408704 }, DATA(chunk_remapped), INCOMPAT_REMAP_TREE,
	  .bad = BAD(WITH_INCOMPAT("type", 0),
		     FIELD_NAMED("num_stripes", disk_chunk, type, BG_METADATA | BG_DUP)) },
	{ { 256, KEY_CHUNK_ITEM, 30408704 }, DATA(chunk_single), INCOMPAT_REMAP_TREE,
	  .bad = BAD(FIELD_NAMED("num_stripes", disk_chunk, type, BG_DATA | BG_DUP | BG_REMAPPED)) },
	{ { 13631488, KEY_BLOCK_GROUP_ITEM, 8388608 }, DATA(block_group),
	  .text = "\t\tblock group used 4096 chunk_objectid 256 flags DATA|single\n",
	  .json = "\"used\":4096,\"chunk_objectid\":256,\"flags\":1,\"flags_names\":[\"DATA\",\"single\"]",
	  .bad = BAD(SIZE(23), SIZE(25), OFFSET(0), BG(used, 8388609), BG(chunk_objectid, 255), BG(flags, 0),
		     BG(flags, BG_DATA | BG_RAID1 | BG_DUP), BG(flags, BG_DATA | BG_SYSTEM),
		     WITH_INCOMPAT("item_size", INCOMPAT_REMAP_TREE)) },
	{ { 13631488, KEY_BLOCK_GROUP_ITEM, 8388608 }, DATA(block_group_remap), INCOMPAT_REMAP_TREE,
	  .text = "\t\tblock group used 0 chunk_objectid 256 flags METADATA_REMAP|DUP\n",
	  .json = "\"used\":0,\"chunk_objectid\":256,\"flags\":4128,\"flags_names\":[\"METADATA_REMAP\",\"DUP\"],"
		  "\"remap_bytes\":7,\"identity_remap_count\":8" },
	{ { OID_EXTENT_CSUM, KEY_EXTENT_CSUM, 8192 }, "abcdefghijklmnopqrst", 20,
	  .text = "\t\trange start 8192 end 28672 length 20480\n",
	  .json = "\"start\":8192,\"end\":28672,\"length\":20480",
	  .bad = BAD(SIZE(19), OBJECTID(1), OFFSET(512)) },
	{ { 257, KEY_CSUM_ITEM, 0 }, "", 0, .text = "\t\tcsum item\n" },
	{ { 13631488, KEY_FREE_SPACE_INFO, 8388608 }, DATA(free_space_info),
	  .text = "\t\tfree space info extent count 3 flags 1\n", .json = "\"extent_count\":3,\"flags\":1",
	  .bad = BAD(SIZE(7), SIZE(9), OBJECTID(512), OFFSET(0), OFFSET(512)) },
	{ { 13631488, KEY_FREE_SPACE_EXTENT, 4096 }, "", 0, .text = "\t\tfree space extent\n",
	  .bad = BAD(SIZE(1), OBJECTID(512), OFFSET(0), OFFSET(-4096)) },
	{ { 13631488, KEY_FREE_SPACE_BITMAP, 9 * 4096 }, "\1\1", 2, .text = "\t\tfree space bitmap\n",
	  .json = "\"bitmap\":\"0101\"",
	  .bad = BAD(SIZE(0), SIZE(1), OBJECTID(512), OFFSET(0), { "item_size", BAD_OFFSET, 0, 0, 17 * 4096 }) },
	{ { 1, KEY_DEV_ITEM, 1 }, DATA(dev_item),
	  .text = "\t\tdevid 1 total_bytes 1073741824 bytes_used 1048576\n"
		  "\t\tio_align 4096 io_width 4096 sector_size 4096 type 0\n"
		  "\t\tgeneration 0 start_offset 0 dev_group 0\n\t\tseek_speed 0 bandwidth 0\n"
		  "\t\tuuid abababab-abab-abab-abab-abababababab\n\t\tfsid cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd\n",
	  .bad = BAD(SIZE(97), SIZE(99), OBJECTID(2), FIELD(disk_dev_item, devid, 2),
		     FIELD(disk_dev_item, bytes_used, (1 << 30) + 1)) },
	{ { 1, KEY_DEV_EXTENT, 22020096 }, DATA(dev_extent),
	  .text = "\t\tdev extent chunk_tree 3\n\t\tchunk_objectid 256 chunk_offset 13631488 length 8388608\n"
		  "\t\tchunk_tree_uuid 00000000-0000-0000-0000-000000000000\n",
	  .bad = BAD(SIZE(47), OFFSET(512), DEV_EXTENT(chunk_tree, 2), DEV_EXTENT(chunk_objectid, 255),
		     DEV_EXTENT(chunk_offset, 512), DEV_EXTENT(length, 512)) },
	{ { 13631488, KEY_RAID_STRIPE, 8192 }, DATA(strides), INCOMPAT_RAID_STRIPE_TREE,
	  .text = "\t\t\tstripe 0 devid 1 physical 4096\n\t\t\tstripe 1 devid 2 physical 8192\n",
	  .json = "\"stripes\":[{\"devid\":1,\"physical\":4096},{\"devid\":2,\"physical\":8192}]",
	  .bad = BAD(SIZE(15), SIZE(31), OBJECTID(512), WITH_INCOMPAT("key.type", 0)) },
	{ { 13631488, KEY_IDENTITY_REMAP, 4096 }, "", 0, .text = "" },
	{ { 13631488, KEY_REMAP, 4096 }, DATA(remap), .text = "\t\taddress 65536\n", .bad = BAD(SIZE(7), SIZE(9)) },
	{ { 65536, KEY_REMAP_BACKREF, 4096 }, DATA(remap), .text = "\t\taddress 65536\n",
	  .bad = BAD(SIZE(7), SIZE(9)) },
	{ { 0, KEY_QGROUP_STATUS, 0 }, DATA(qgroup_status), INCOMPAT_SIMPLE_QUOTA,
	  .text = "\t\tversion 1 generation 9 flags OFF|SIMPLE_MODE|INCONSISTENT|UNKNOWN(0x10) scan 0 enable_gen 8\n",
	  .json = "\"version\":1,\"generation\":9,\"flags\":28,"
		  "\"flags_names\":[\"OFF\",\"SIMPLE_MODE\",\"INCONSISTENT\"],"
		  "\"rescan\":0,\"enable_gen\":8",
	  .bad = BAD(SIZE(31)) },
	{ { 0, KEY_QGROUP_STATUS, 0 }, &qgroup_status, QGROUP_STATUS_SHORT,
	  .text = "\t\tversion 1 generation 9 flags OFF|SIMPLE_MODE|INCONSISTENT|UNKNOWN(0x10) scan 0\n" },
	{ { 0, KEY_QGROUP_INFO, 256 }, DATA(qgroup_info),
	  .text = "\t\tgeneration 9\n\t\treferenced 1 referenced_compressed 2\n"
		  "\t\texclusive 3 exclusive_compressed 4\n",
	  .bad = BAD(SIZE(39)) },
	{ { 0, KEY_QGROUP_LIMIT, 256 }, DATA(qgroup_limit),
	  .text = "\t\tflags 11\n\t\tmax_referenced -1 max_exclusive 2\n\t\trsv_referenced 3 rsv_exclusive 4\n",
	  .json = "\"flags\":17,\"max_rfer\":18446744073709551615,\"max_excl\":2,\"rsv_rfer\":3,\"rsv_excl\":4",
	  .bad = BAD(SIZE(39)) },
	{ { 256, KEY_QGROUP_RELATION, 1ull << 48 }, "", 0, .text = "" },
	{ { OID_BALANCE, KEY_TEMPORARY_ITEM, 0 }, DATA(balance),
	  .text = "\t\ttemporary item objectid BALANCE offset 0\n\t\tbalance status flags 6\n\t\tDATA\n"
		  BALANCE_ARGS("0", "0") "\t\tMETADATA\n" BALANCE_ARGS("1", "5") "\t\tSYSTEM\n" BALANCE_ARGS("0", "0"),
	  .bad = BAD(SIZE(447)) },
	{ { OID_CSUM_CHANGE, KEY_TEMPORARY_ITEM, 1 }, "", 0,
	  .text = "\t\ttemporary item objectid CSUM_CHANGE offset 1\n\t\ttarget csum type xxhash64 (1)\n",
	  .json = "\"target_csum\":\"xxhash64\"" },
	{ { OID_CSUM_CHANGE, KEY_TEMPORARY_ITEM, 4 }, "", 0,
	  .text = "\t\ttemporary item objectid CSUM_CHANGE offset 4\n\t\tunknown csum type 4\n" },
	{ { 77, KEY_TEMPORARY_ITEM, 1 }, "", 0,
	  .text = "\t\ttemporary item objectid 77 offset 1\n\t\tunknown temporary item objectid 77\n" },
	{ { OID_DEV_STATS, KEY_PERSISTENT_ITEM, 1 }, DATA(dev_stats),
	  .text = "\t\tpersistent item objectid DEV_STATS offset 1\n\t\tdevice stats\n"
		  "\t\twrite_errs 1 read_errs 2 flush_errs 3 corruption_errs 4 generation 5\n" },
	{ { OID_DEV_STATS, KEY_PERSISTENT_ITEM, 1 }, DATA(dev_stats_longer),
	  .text = "\t\tpersistent item objectid DEV_STATS offset 1\n\t\tdevice stats\n"
		  "\t\twrite_errs 0 read_errs 0 flush_errs 0 corruption_errs 0 generation 5\n"
		  "\t\tunknown stats item bytes 8\t\tunknown item 5 offset 40 value 6\n" },
	{ { 77, KEY_PERSISTENT_ITEM, 1 }, "", 0,
	  .text = "\t\tpersistent item objectid 77 offset 1\n\t\tunknown persistent item objectid 77\n" },
	{ { 0, KEY_DEV_REPLACE, 0 }, DATA(dev_replace),
	  .text = "\t\tsrc devid 2 cursor left 4096 cursor right 8192 mode AVOID\n"
		  "\t\tstate unknown(7) write errors 1 uncorrectable read errors 0\n"
		  "\t\tstart time 60 (1970-01-01 00:01:00)\n\t\tstop time 60 (1970-01-01 00:01:00)\n",
	  .bad = BAD(SIZE(71)) },
	{ { 1, KEY_UUID_SUBVOL, 2 }, DATA(subvolumes), .text = "\t\tsubvol_id 256\n\t\tsubvol_id 257\n",
	  .json = "\"subvol_ids\":[256,257]", .bad = BAD(SIZE(0), SIZE(15)) },
	{ { 1, KEY_UUID_RECEIVED_SUBVOL, 2 }, DATA(subvolumes), .text = "\t\tsubvol_id 256\n\t\tsubvol_id 257\n",
	  .bad = BAD(SIZE(0), SIZE(9)) },
	{ { 1, KEY_STRING_ITEM, 0 }, "any\0thing", 9, .text = "\t\titem data any\n",
	  .json = "\"string\":\"any\\u0000thing\"" },
};

#endif
