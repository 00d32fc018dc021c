/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_DISK_H
#define BTRKIT_FORMAT_DISK_H

/* On-disk layout of the superblock and of the parts common to all tree blocks. */

#include <assert.h>
#include <stddef.h>

#include <btrkit/types.h>

#include "lib/base/le.h"

#define DISK_ASSERT_SIZE(type, n) static_assert(sizeof(struct type) == (n), #type " has the wrong size")
#define DISK_ASSERT_AT(type, field, n) \
	static_assert(offsetof(struct type, field) == (n), #type "." #field " is in the wrong place")

struct disk_key {
	le64 objectid;
	uint8_t type;
	le64 offset;
};
DISK_ASSERT_SIZE(disk_key, 17);
DISK_ASSERT_AT(disk_key, type, 8);
DISK_ASSERT_AT(disk_key, offset, 9);

struct disk_header {
	uint8_t csum[32];
	uint8_t fsid[16];
	le64 bytenr;
	le64 flags;
	uint8_t chunk_tree_uuid[16];
	le64 generation;
	le64 owner;
	le32 nritems;
	uint8_t level;
};
DISK_ASSERT_SIZE(disk_header, 101);
DISK_ASSERT_AT(disk_header, fsid, 32);
DISK_ASSERT_AT(disk_header, bytenr, 48);
DISK_ASSERT_AT(disk_header, flags, 56);
DISK_ASSERT_AT(disk_header, chunk_tree_uuid, 64);
DISK_ASSERT_AT(disk_header, generation, 80);
DISK_ASSERT_AT(disk_header, owner, 88);
DISK_ASSERT_AT(disk_header, nritems, 96);
DISK_ASSERT_AT(disk_header, level, 100);

/* Bytes of a block after its header, available for items and their data, or for key pointers. */
static inline uint32_t leaf_room(uint32_t nodesize)
{
	return nodesize - (uint32_t)sizeof(struct disk_header);
}

/* The upper byte of the header's flags is the backref revision, the rest are flags. */
#define HEADER_FLAG_WRITTEN (1ull << 0)
#define HEADER_FLAG_RELOC (1ull << 1)
#define HEADER_BACKREF_SHIFT 56
/* The backref revision of all current filesystems. */
#define MIXED_BACKREF_REV (1ull << HEADER_BACKREF_SHIFT)
#define SUPER_FLAG_SEEDING (1ull << 32)

/* Header of an item in a leaf. The offset is relative to the end of the block header. */
struct disk_item {
	struct disk_key key;
	le32 offset;
	le32 size;
};
DISK_ASSERT_SIZE(disk_item, 25);
DISK_ASSERT_AT(disk_item, offset, 17);
DISK_ASSERT_AT(disk_item, size, 21);

/* A key pointer of a node. */
struct disk_key_ptr {
	struct disk_key key;
	le64 blockptr;
	le64 generation;
};
DISK_ASSERT_SIZE(disk_key_ptr, 33);
DISK_ASSERT_AT(disk_key_ptr, blockptr, 17);
DISK_ASSERT_AT(disk_key_ptr, generation, 25);

struct disk_dev_item {
	le64 devid;
	le64 total_bytes;
	le64 bytes_used;
	le32 io_align;
	le32 io_width;
	le32 sector_size;
	le64 type;
	le64 generation;
	le64 start_offset;
	le32 dev_group;
	uint8_t seek_speed;
	uint8_t bandwidth;
	uint8_t uuid[16];
	uint8_t fsid[16];
};
DISK_ASSERT_SIZE(disk_dev_item, 98);
DISK_ASSERT_AT(disk_dev_item, total_bytes, 8);
DISK_ASSERT_AT(disk_dev_item, bytes_used, 16);
DISK_ASSERT_AT(disk_dev_item, io_align, 24);
DISK_ASSERT_AT(disk_dev_item, io_width, 28);
DISK_ASSERT_AT(disk_dev_item, sector_size, 32);
DISK_ASSERT_AT(disk_dev_item, type, 36);
DISK_ASSERT_AT(disk_dev_item, generation, 44);
DISK_ASSERT_AT(disk_dev_item, start_offset, 52);
DISK_ASSERT_AT(disk_dev_item, dev_group, 60);
DISK_ASSERT_AT(disk_dev_item, seek_speed, 64);
DISK_ASSERT_AT(disk_dev_item, bandwidth, 65);
DISK_ASSERT_AT(disk_dev_item, uuid, 66);
DISK_ASSERT_AT(disk_dev_item, fsid, 82);

struct disk_stripe {
	le64 devid;
	le64 offset;
	uint8_t dev_uuid[16];
};
DISK_ASSERT_SIZE(disk_stripe, 32);
DISK_ASSERT_AT(disk_stripe, offset, 8);
DISK_ASSERT_AT(disk_stripe, dev_uuid, 16);

/* Followed by num_stripes stripes. */
struct disk_chunk {
	le64 length;
	le64 owner;
	le64 stripe_len;
	le64 type;
	le32 io_align;
	le32 io_width;
	le32 sector_size;
	le16 num_stripes;
	le16 sub_stripes;
};
DISK_ASSERT_SIZE(disk_chunk, 48);
DISK_ASSERT_AT(disk_chunk, owner, 8);
DISK_ASSERT_AT(disk_chunk, stripe_len, 16);
DISK_ASSERT_AT(disk_chunk, type, 24);
DISK_ASSERT_AT(disk_chunk, io_align, 32);
DISK_ASSERT_AT(disk_chunk, io_width, 36);
DISK_ASSERT_AT(disk_chunk, sector_size, 40);
DISK_ASSERT_AT(disk_chunk, num_stripes, 44);
DISK_ASSERT_AT(disk_chunk, sub_stripes, 46);

struct disk_root_backup {
	le64 tree_root, tree_root_gen;
	le64 chunk_root, chunk_root_gen;
	le64 extent_root, extent_root_gen;
	le64 fs_root, fs_root_gen;
	le64 dev_root, dev_root_gen;
	le64 csum_root, csum_root_gen;
	le64 total_bytes, bytes_used, num_devices;
	le64 unused_64[4];
	uint8_t tree_root_level;
	uint8_t chunk_root_level;
	uint8_t extent_root_level;
	uint8_t fs_root_level;
	uint8_t dev_root_level;
	uint8_t csum_root_level;
	uint8_t unused_8[10];
};
DISK_ASSERT_SIZE(disk_root_backup, 168);
DISK_ASSERT_AT(disk_root_backup, total_bytes, 96);
DISK_ASSERT_AT(disk_root_backup, unused_64, 120);
DISK_ASSERT_AT(disk_root_backup, tree_root_level, 152);

#define SUPER_SIZE 4096
#define SUPER_MAGIC 0x4d5f53665248425full /* "_BHRfS_M" */
#define SUPER_MAGIC_UNDO 0x4f444e556b727462ull /* "btrkUNDO": see super_undo_mark() */
#define SUPER_LABEL_SIZE 256
#define SUPER_SYS_CHUNKS_SIZE 2048
#define SUPER_BACKUPS 4
#define SUPER_MIRRORS 3

struct disk_super {
	uint8_t csum[32];
	uint8_t fsid[16];
	le64 bytenr;
	le64 flags;
	le64 magic;
	le64 generation;
	le64 root;
	le64 chunk_root;
	le64 log_root;
	le64 log_root_transid;
	le64 total_bytes;
	le64 bytes_used;
	le64 root_dir_objectid;
	le64 num_devices;
	le32 sectorsize;
	le32 nodesize;
	le32 leafsize;
	le32 stripesize;
	le32 sys_chunk_array_size;
	le64 chunk_root_generation;
	le64 compat_flags;
	le64 compat_ro_flags;
	le64 incompat_flags;
	le16 csum_type;
	uint8_t root_level;
	uint8_t chunk_root_level;
	uint8_t log_root_level;
	struct disk_dev_item dev_item;
	char label[SUPER_LABEL_SIZE];
	le64 cache_generation;
	le64 uuid_tree_generation;
	uint8_t metadata_uuid[16];
	le64 nr_global_roots;
	le64 remap_root;
	le64 remap_root_generation;
	uint8_t remap_root_level;
	uint8_t reserved[199];
	uint8_t sys_chunk_array[SUPER_SYS_CHUNKS_SIZE];
	struct disk_root_backup backups[SUPER_BACKUPS];
	uint8_t padding[565];
};
DISK_ASSERT_SIZE(disk_super, SUPER_SIZE);
DISK_ASSERT_AT(disk_super, magic, 64);
DISK_ASSERT_AT(disk_super, generation, 72);
DISK_ASSERT_AT(disk_super, root, 80);
DISK_ASSERT_AT(disk_super, chunk_root, 88);
DISK_ASSERT_AT(disk_super, log_root, 96);
DISK_ASSERT_AT(disk_super, total_bytes, 112);
DISK_ASSERT_AT(disk_super, bytes_used, 120);
DISK_ASSERT_AT(disk_super, root_dir_objectid, 128);
DISK_ASSERT_AT(disk_super, num_devices, 136);
DISK_ASSERT_AT(disk_super, sectorsize, 144);
DISK_ASSERT_AT(disk_super, nodesize, 148);
DISK_ASSERT_AT(disk_super, leafsize, 152);
DISK_ASSERT_AT(disk_super, stripesize, 156);
DISK_ASSERT_AT(disk_super, sys_chunk_array_size, 160);
DISK_ASSERT_AT(disk_super, chunk_root_generation, 164);
DISK_ASSERT_AT(disk_super, compat_flags, 172);
DISK_ASSERT_AT(disk_super, compat_ro_flags, 180);
DISK_ASSERT_AT(disk_super, incompat_flags, 188);
DISK_ASSERT_AT(disk_super, csum_type, 196);
DISK_ASSERT_AT(disk_super, root_level, 198);
DISK_ASSERT_AT(disk_super, dev_item, 201);
DISK_ASSERT_AT(disk_super, label, 299);
DISK_ASSERT_AT(disk_super, cache_generation, 555);
DISK_ASSERT_AT(disk_super, uuid_tree_generation, 563);
DISK_ASSERT_AT(disk_super, metadata_uuid, 571);
DISK_ASSERT_AT(disk_super, nr_global_roots, 587);
DISK_ASSERT_AT(disk_super, remap_root, 595);
DISK_ASSERT_AT(disk_super, reserved, 612);
DISK_ASSERT_AT(disk_super, sys_chunk_array, 811);
DISK_ASSERT_AT(disk_super, backups, 2859);

static inline struct btrkit_key key_get(const struct disk_key *d)
{
	return (struct btrkit_key){ le64_get(d->objectid), d->type, le64_get(d->offset) };
}

static inline struct disk_key key_put(const struct btrkit_key *k)
{
	return (struct disk_key){ le64_put(k->objectid), k->type, le64_put(k->offset) };
}

static inline int key_cmp(const struct btrkit_key *a, const struct btrkit_key *b)
{
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

#define KEY(o, t, off) ((struct btrkit_key){ (o), (uint8_t)(t), (off) })

#endif
