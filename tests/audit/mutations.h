/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_AUDIT_MUTATIONS_H
#define BTRKIT_TESTS_AUDIT_MUTATIONS_H

/*
 * The contradictions: what is changed in which image, and the code that must be reported; for backup roots, the message
 * of the audit.
 */

enum what {
	ADD,	      /* to the field of the item at offset @at */
	REF_ADD,      /* the same, relative to the inline reference of the item */
	KEY_ADD,      /* to the offset of the key of the item */
	LAST_KEY_ADD, /* to the objectid of the last key of its leaf */
	DROP,	      /* the item */
	INSERT,	      /* an item of type @add after the last one of the leaf, with the first @size bytes of the item */
	TWICE,	      /* the inline reference of the last extent of the leaf becomes keyed too */
	HEADER_ADD,   /* to a field in the header of the leaf of the item */
	SUPER_ADD,    /* to a field of the superblock */
	BACKUP_ADD,   /* to a field of the current backup root */
	CACHE_ADD,    /* to the length of the first entry of a v1 cache */
};

struct mutation {
	const char *image, *name, *expect;
	enum what what;
	int64_t add;
	unsigned at, size; /* the field */
	/* The item: number @nth, counted from 0, of those in the tree with this type ... */
	uint64_t tree;
	uint8_t type;
	unsigned nth;
	uint8_t ref;	/* ... and have an inline reference of this type, if it is not 0 ... */
	uint64_t flags; /* ... and these flags. */
};

#define DEFAULT "good-default"
#define SNAPSHOTS "good-generations"
#define KEYED "good-keyed-references"
#define OLD "good-not-skinny"
#define V1 "good-cache-v1"
#define MIXED "good-mixed"

#define AT(field, n) .at = (field), .size = (n)
#define EXTENT(field) AT(offsetof(struct disk_extent_item, field), 8)
#define FILE_EXTENT(field) AT(offsetof(struct disk_file_extent, field), 8)
#define GROUP(field) AT(offsetof(struct disk_block_group, field), 8)
#define ROOT(field) AT(offsetof(struct disk_root_item, field), 8)
#define DEVICE(field) AT(offsetof(struct disk_dev_item, field), 8)
#define SUPER(field) AT(offsetof(struct disk_super, field), 8)
#define BACKUP(field) AT(offsetof(struct disk_root_backup, field), 8)
#define SYS_CHUNK(offset, n) AT(offsetof(struct disk_super, sys_chunk_array) + (offset), n)

#define METADATA .tree = 2, .type = KEY_METADATA_ITEM
#define DATA .tree = 2, .type = KEY_EXTENT_ITEM, .flags = EXTENT_FLAG_DATA
#define FILES(n) .tree = 5, .type = KEY_EXTENT_DATA, .nth = (n)
#define ROOTS(n) .tree = 1, .type = KEY_ROOT_ITEM, .nth = (n)
#define GROUPS(n) .tree = 11, .type = KEY_BLOCK_GROUP_ITEM, .nth = (n)
#define DEV_EXTENTS(n) .tree = 4, .type = KEY_DEV_EXTENT, .nth = (n)
#define FREE_SPACE(kind, n) .tree = 10, .type = KEY_FREE_SPACE_##kind, .nth = (n)

static const struct mutation mutations[] = {
	/* Extents. */
	{ DEFAULT, "a reference too many", "BTR-EXTENT-REFCOUNT", ADD, 1, EXTENT(refs), METADATA },
	{ DEFAULT, "no reference", "BTR-ITEM-INVALID", ADD, -1, EXTENT(refs), METADATA },
	{ KEYED, "a reference too few", "BTR-EXTENT-REFCOUNT", ADD, -1, EXTENT(refs), METADATA,
	  .nth = 6 },
	{ DEFAULT, "a data reference too many", "BTR-EXTENT-REFCOUNT", ADD, 1, EXTENT(refs), DATA },
	{ DEFAULT, "generation of a tree block", "BTR-EXTENT-BLOCK", ADD, -1, EXTENT(generation), METADATA },
	{ DEFAULT, "generation of data", "BTR-ITEM-INVALID", ADD, 1000, EXTENT(generation), DATA },
	{ DEFAULT, "data that is a tree block too", "BTR-ITEM-INVALID", ADD, 2, EXTENT(flags), DATA },
	{ SNAPSHOTS, "no full back references", "BTR-EXTENT-REF-MISSING", ADD, -256, EXTENT(flags), METADATA,
	  .flags = EXTENT_FLAG_FULL_BACKREF },
	{ DEFAULT, "full back references that are none", "BTR-EXTENT-REF-EXTRA", ADD, 256, EXTENT(flags), METADATA,
	  .nth = 5 },
	{ DEFAULT, "level of a tree block", "BTR-EXTENT-BLOCK", KEY_ADD, 1, METADATA },
	{ OLD, "level of a tree block in the old form", "BTR-EXTENT-BLOCK", ADD, 1,
	  AT(sizeof(struct disk_extent_item) + 17, 1), .tree = 2, .type = KEY_EXTENT_ITEM,
	  .flags = EXTENT_FLAG_TREE_BLOCK },
	{ DEFAULT, "data that overlaps", "BTR-EXTENT-OVERLAP", KEY_ADD, 4096, DATA },
	{ DEFAULT, "less data", "BTR-EXTENT-MISSING", KEY_ADD, -4096, DATA },
	{ DEFAULT, "a data extent is missing", "BTR-EXTENT-MISSING", DROP, 0, DATA },
	{ DEFAULT, "the extent of a tree block is missing", "BTR-EXTENT-MISSING", DROP, 0, METADATA },
	/* Inline references. */
	{ DEFAULT, "another tree refers to a block", "BTR-EXTENT-REF-MISSING", REF_ADD, 1, AT(1, 8), METADATA,
	  .ref = KEY_TREE_BLOCK_REF },
	{ KEYED, "another block refers to a block", "BTR-EXTENT-REF-MISSING", REF_ADD, 4096, AT(1, 8), METADATA,
	  .ref = KEY_SHARED_BLOCK_REF },
	{ KEYED, "a reference of another kind", "BTR-EXTENT-REF-EXTRA", REF_ADD,
	  KEY_TREE_BLOCK_REF - KEY_SHARED_BLOCK_REF, AT(0, 1), METADATA, .ref = KEY_SHARED_BLOCK_REF },
	{ DEFAULT, "another tree refers to data", "BTR-EXTENT-REF-MISSING", REF_ADD, 252, AT(1, 8), DATA,
	  .ref = KEY_EXTENT_DATA_REF },
	{ DEFAULT, "another inode refers to data", "BTR-EXTENT-REF-EXTRA", REF_ADD, 1, AT(9, 8), DATA,
	  .ref = KEY_EXTENT_DATA_REF },
	{ DEFAULT, "data is referred to at another offset", "BTR-EXTENT-REF-MISSING", REF_ADD, 4096, AT(17, 8),
	  DATA,
	  .ref = KEY_EXTENT_DATA_REF },
	{ DEFAULT, "data is referred to more often", "BTR-ITEM-INVALID", REF_ADD, 1, AT(25, 4), DATA,
	  .ref = KEY_EXTENT_DATA_REF },
	{ SNAPSHOTS, "another leaf refers to data", "BTR-EXTENT-REF-EXTRA", REF_ADD, 4096, AT(1, 8), DATA,
	  .ref = KEY_SHARED_DATA_REF },
	{ SNAPSHOTS, "a leaf refers to data more often", "BTR-ITEM-INVALID", REF_ADD, 1, AT(9, 4), DATA,
	  .ref = KEY_SHARED_DATA_REF },
	/* Keyed references. */
	{ KEYED, "a keyed reference to a block is missing", "BTR-EXTENT-REF-MISSING", DROP,
	  .tree = 2, .type = KEY_TREE_BLOCK_REF },
	{ KEYED, "a keyed shared reference to a block is missing", "BTR-EXTENT-REF-MISSING", DROP, .tree = 2,
	  .type = KEY_SHARED_BLOCK_REF },
	{ KEYED, "a keyed reference to data is missing", "BTR-EXTENT-REF-MISSING", DROP,
	  .tree = 2, .type = KEY_EXTENT_DATA_REF },
	{ KEYED, "a keyed shared reference to data is missing", "BTR-EXTENT-REF-MISSING", DROP, .tree = 2,
	  .type = KEY_SHARED_DATA_REF },
	{ KEYED, "another tree, keyed", "BTR-EXTENT-REF-MISSING", KEY_ADD, 1, .tree = 2, .type = KEY_TREE_BLOCK_REF,
	  .nth = 1 },
	{ KEYED, "another parent, keyed", "BTR-EXTENT-REF-EXTRA", KEY_ADD, 4096, .tree = 2,
	  .type = KEY_SHARED_BLOCK_REF, .nth = 1 },
	{ KEYED, "another hash", "BTR-EXTENT-REF-KEY", KEY_ADD, -1, .tree = 2, .type = KEY_EXTENT_DATA_REF },
	{ KEYED, "another inode, keyed", "BTR-EXTENT-REF-KEY", ADD, 1, AT(8, 8),
	  .tree = 2, .type = KEY_EXTENT_DATA_REF },
	{ KEYED, "data is referred to more often, keyed", "BTR-EXTENT-REFCOUNT", ADD, 1, AT(24, 4), .tree = 2,
	  .type = KEY_EXTENT_DATA_REF },
	{ KEYED, "a leaf refers to data more often, keyed", "BTR-EXTENT-REFCOUNT", ADD, 1, AT(0, 4), .tree = 2,
	  .type = KEY_SHARED_DATA_REF },
	{ DEFAULT, "a reference inline and keyed", "BTR-EXTENT-REF-TWICE", TWICE, DATA },
	{ DEFAULT, "a reference to no extent", "BTR-EXTENT-REF-STRAY", INSERT, KEY_TREE_BLOCK_REF, METADATA },
	{ DEFAULT, "an item that nobody knows", "BTR-ITEM-UNKNOWN", INSERT, 99, METADATA },
	{ DEFAULT, "an item of another tree", "BTR-ITEM-TREE", INSERT, KEY_TREE_BLOCK_REF, DEV_EXTENTS(0) },
	/* References to extents. */
	{ DEFAULT, "a file extent elsewhere", "BTR-EXTENT-MISSING", ADD, 4096, FILE_EXTENT(disk_bytenr), FILES(1) },
	{ DEFAULT, "a longer file extent", "BTR-EXTENT-MISSING", ADD, 4096, FILE_EXTENT(disk_num_bytes), FILES(1) },
	{ DEFAULT, "a file extent from further in", "BTR-EXTENT-REF-MISSING", ADD, 4096, FILE_EXTENT(offset),
	  FILES(1) },
	{ DEFAULT, "a file extent is missing", "BTR-EXTENT-REF-EXTRA", DROP, FILES(1) },
	{ V1, "an extent of a cache is missing", "BTR-EXTENT-REF-EXTRA", DROP, .tree = 1,
	  .type = KEY_EXTENT_DATA },
	{ DEFAULT, "an item that is wrong in itself", "BTR-ITEM-INVALID", ADD, 40,
	  AT(offsetof(struct disk_file_extent, type), 1), FILES(1) },
	/* Roots. */
	{ DEFAULT, "a root elsewhere", "BTR-BLOCK-HEADER", ADD, 16384, ROOT(bytenr), ROOTS(3) },
	{ DEFAULT, "level of a root", "BTR-BLOCK-HEADER", ADD, 1, AT(offsetof(struct disk_root_item, level), 1),
	  ROOTS(3) },
	{ DEFAULT, "generation of a root", "BTR-BLOCK-HEADER", ADD, -1, ROOT(generation), ROOTS(3) },
	{ DEFAULT, "the other generation of a root", "BTR-ROOT-GENERATION", ADD, -1, ROOT(generation_v2), ROOTS(3) },
	{ SNAPSHOTS, "snapshots are forgotten", "BTR-EXTENT-SNAPSHOT", ADD, -6, ROOT(last_snapshot), .tree = 1,
	  .type = KEY_ROOT_ITEM, .nth = 7 },
	{ DEFAULT, "a tree is missing", "BTR-TREE-MISSING", DROP, ROOTS(5) },
	/* Block groups. */
	{ DEFAULT, "more is used", "BTR-GROUP-USED", ADD, 4096, GROUP(used), GROUPS(0) },
	{ DEFAULT, "less is used", "BTR-GROUP-USED", ADD, -16384, GROUP(used), GROUPS(1) },
	{ DEFAULT, "flags of a group", "BTR-GROUP-DIFFERS", ADD, 4, GROUP(flags), GROUPS(0) },
	{ DEFAULT, "a group is missing", "BTR-CHUNK-GROUP", DROP, GROUPS(0) },
	{ DEFAULT, "a longer group", "BTR-GROUP-DIFFERS", KEY_ADD, 65536, GROUPS(0) },
	{ V1, "a group in the extent tree is missing", "BTR-CHUNK-GROUP", DROP, .tree = 2,
	  .type = KEY_BLOCK_GROUP_ITEM },
	{ DEFAULT, "bytes used of all", "BTR-BYTES-USED", SUPER_ADD, 4096, SUPER(bytes_used) },
	/* Chunks and devices. */
	{ DEFAULT, "a device extent is missing", "BTR-CHUNK-EXTENT", DROP, DEV_EXTENTS(0) },
	{ DEFAULT, "a device extent elsewhere", "BTR-DEVICE-EXTENT-CHUNK", KEY_ADD, 65536, DEV_EXTENTS(0) },
	{ DEFAULT, "a device extent of another chunk", "BTR-DEVICE-EXTENT-DIFFERS", ADD, 65536, AT(16, 8),
	  DEV_EXTENTS(0) },
	{ DEFAULT, "a shorter device extent", "BTR-DEVICE-EXTENT-DIFFERS", ADD, -4096, AT(24, 8), DEV_EXTENTS(0) },
	{ DEFAULT, "a device extent on no device", "BTR-DEVICE-EXTENT-DEVICE", INSERT, KEY_DEV_EXTENT, AT(0, 48),
	  DEV_EXTENTS(0) },
	{ DEFAULT, "a chunk is missing", "BTR-BLOCK-READ", DROP, .tree = 3, .type = KEY_CHUNK_ITEM, .nth = 2 },
	{ DEFAULT, "bytes used of a device", "BTR-DEVICE-USED", ADD, 65536, DEVICE(bytes_used), .tree = 3,
	  .type = KEY_DEV_ITEM },
	{ DEFAULT, "a smaller device", "BTR-DEVICE-EXTENT-END", ADD, -(20 << 20), DEVICE(total_bytes), .tree = 3,
	  .type = KEY_DEV_ITEM },
	{ DEFAULT, "the device item of the superblock", "BTR-DEVICE-COPY", SUPER_ADD, 65536,
	  AT(offsetof(struct disk_super, dev_item) + offsetof(struct disk_dev_item, bytes_used), 8) },
	{ DEFAULT, "bytes of all devices", "BTR-DEVICE-SUM", SUPER_ADD, 65536, SUPER(total_bytes) },
	{ DEFAULT, "a copy of another system chunk", "BTR-BLOCK-READ", SUPER_ADD, 1 << 30, SYS_CHUNK(9, 8) },
	{ DEFAULT, "a system chunk unlike its copy", "BTR-SYSTEM-CHUNK", SUPER_ADD, 1,
	  SYS_CHUNK(sizeof(struct disk_key) + sizeof(struct disk_chunk) + offsetof(struct disk_stripe, dev_uuid), 1) },
	/* Free space. */
	{ DEFAULT, "free space elsewhere", "BTR-SPACE-WRONG", KEY_ADD, -4096, FREE_SPACE(EXTENT, 1) },
	{ DEFAULT, "free space is missing", "BTR-SPACE-ITEM", DROP, FREE_SPACE(EXTENT, 0) },
	{ DEFAULT, "more free ranges", "BTR-SPACE-ITEM", ADD, 1, AT(0, 4), FREE_SPACE(INFO, 1) },
	{ DEFAULT, "a group without free space", "BTR-SPACE-INFO", DROP, FREE_SPACE(INFO, 1) },
	{ DEFAULT, "told by bitmaps and is not", "BTR-SPACE-ITEM", ADD, 1, AT(4, 4), FREE_SPACE(INFO, 1) },
	{ DEFAULT, "free space of no group", "BTR-SPACE-STRAY", INSERT, KEY_FREE_SPACE_INFO, AT(0, 8),
	  FREE_SPACE(INFO, 0) },
	{ MIXED, "a bit of a bitmap", "BTR-SPACE-WRONG", ADD, 1, AT(100, 1), FREE_SPACE(BITMAP, 0) },
	{ DEFAULT, "a free space tree that is not used", "BTR-SPACE-FEATURE", SUPER_ADD, -3,
	  SUPER(compat_ro_flags) },
	{ V1, "no free space tree", "BTR-TREE-MISSING", SUPER_ADD, 3, SUPER(compat_ro_flags) },
	{ V1, "another length in a v1 cache", "BTR-SPACE-CACHE", CACHE_ADD, -4096 },
	/* Checksums. */
	{ DEFAULT, "checksums of what is no data", "BTR-CSUM-EXTENT", KEY_ADD, 1 << 20, .tree = 7,
	  .type = KEY_EXTENT_CSUM },
	/* Trees. */
	{ SNAPSHOTS, "a key above that of the next leaf", "BTR-BLOCK-PARENT", LAST_KEY_ADD, 1000, .tree = 258,
	  .type = KEY_DIR_INDEX },
	{ DEFAULT, "owner of a leaf", "BTR-BLOCK-HEADER", HEADER_ADD, 1, AT(offsetof(struct disk_header, owner), 8),
	  FREE_SPACE(INFO, 0) },
	{ SNAPSHOTS, "another owner of a leaf of files", "BTR-EXTENT-REF-MISSING", HEADER_ADD, 2,
	  AT(offsetof(struct disk_header, owner), 8), .tree = 256, .type = KEY_EXTENT_DATA },
	/* Backup roots. */
	{ DEFAULT, "tree root of the backup", "backup root says", BACKUP_ADD, 4096, BACKUP(tree_root) },
	{ DEFAULT, "generation of the backup", "no backup root", BACKUP_ADD, 1, BACKUP(tree_root_gen) },
	{ DEFAULT, "chunk root of the backup", "chunk_root", BACKUP_ADD, 4096, BACKUP(chunk_root) },
	{ DEFAULT, "extent root of the backup", "extent_root", BACKUP_ADD, 1, BACKUP(extent_root_gen) },
	{ DEFAULT, "top-level subvolume of the backup", "fs_root", BACKUP_ADD, 1,
	  AT(offsetof(struct disk_root_backup, fs_root_level), 1) },
	{ DEFAULT, "device tree of the backup", "dev_root", BACKUP_ADD, 4096, BACKUP(dev_root) },
	{ DEFAULT, "checksum tree of the backup", "csum_root", BACKUP_ADD, 4096, BACKUP(csum_root) },
	{ DEFAULT, "bytes used of the backup", "bytes_used", BACKUP_ADD, 4096, BACKUP(bytes_used) },
	{ DEFAULT, "bytes of the backup", "total_bytes", BACKUP_ADD, 4096, BACKUP(total_bytes) },
	{ DEFAULT, "devices of the backup", "num_devices", BACKUP_ADD, 1, BACKUP(num_devices) },
};

#endif
