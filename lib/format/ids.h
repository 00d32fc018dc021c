/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_IDS_H
#define BTRKIT_FORMAT_IDS_H

/* Numbers of the format: trees and other objectids, item types, block group flags. */

#include <stdbool.h>
#include <stdint.h>

#define LEVELS_MAX 8	/* levels 0 to 7 */
#define NAME_LEN_MAX 255

enum objectid {
	OID_ROOT_TREE = 1,
	OID_EXTENT_TREE = 2,
	OID_CHUNK_TREE = 3,
	OID_DEV_TREE = 4,
	OID_FS_TREE = 5,
	OID_ROOT_TREE_DIR = 6,
	OID_CSUM_TREE = 7,
	OID_QUOTA_TREE = 8,
	OID_UUID_TREE = 9,
	OID_FREE_SPACE_TREE = 10,
	OID_BLOCK_GROUP_TREE = 11,
	OID_RAID_STRIPE_TREE = 12,
	OID_REMAP_TREE = 13,
	OID_FIRST_FREE = 256,
	OID_FIRST_CHUNK_TREE = 256,
	OID_DEV_ITEMS = 1,
	OID_DEV_STATS = 0,
};

/* Negative objectids, as unsigned numbers. */
#define OID_BALANCE ((uint64_t)-4)
#define OID_ORPHAN ((uint64_t)-5)
#define OID_TREE_LOG ((uint64_t)-6)
#define OID_TREE_LOG_FIXUP ((uint64_t)-7)
#define OID_TREE_RELOC ((uint64_t)-8)
#define OID_DATA_RELOC_TREE ((uint64_t)-9)
#define OID_EXTENT_CSUM ((uint64_t)-10)
#define OID_FREE_SPACE ((uint64_t)-11)
#define OID_FREE_INO ((uint64_t)-12)
#define OID_CSUM_CHANGE ((uint64_t)-13)
#define OID_LAST_FREE ((uint64_t)-256)

/* File trees have numbers below this: the higher bits are the level of a qgroup. */
#define OID_FILE_TREE_END (1ull << 48)

/* Whether the objectid is that of a file tree: the top-level subvolume or another one. */
static inline bool oid_is_file_tree(uint64_t oid)
{
	return oid == OID_FS_TREE || (oid >= OID_FIRST_FREE && oid < OID_FILE_TREE_END);
}

enum item_key_type {
	KEY_INODE_ITEM = 1,
	KEY_INODE_REF = 12,
	KEY_INODE_EXTREF = 13,
	KEY_XATTR_ITEM = 24,
	KEY_VERITY_DESC_ITEM = 36,
	KEY_VERITY_MERKLE_ITEM = 37,
	KEY_ORPHAN_ITEM = 48,
	KEY_DIR_LOG_ITEM = 60,
	KEY_DIR_LOG_INDEX = 72,
	KEY_DIR_ITEM = 84,
	KEY_DIR_INDEX = 96,
	KEY_EXTENT_DATA = 108,
	KEY_CSUM_ITEM = 120,
	KEY_EXTENT_CSUM = 128,
	KEY_ROOT_ITEM = 132,
	KEY_ROOT_BACKREF = 144,
	KEY_ROOT_REF = 156,
	KEY_EXTENT_ITEM = 168,
	KEY_METADATA_ITEM = 169,
	KEY_EXTENT_OWNER_REF = 172,
	KEY_TREE_BLOCK_REF = 176,
	KEY_EXTENT_DATA_REF = 178,
	KEY_EXTENT_REF_V0 = 180,
	KEY_SHARED_BLOCK_REF = 182,
	KEY_SHARED_DATA_REF = 184,
	KEY_BLOCK_GROUP_ITEM = 192,
	KEY_FREE_SPACE_INFO = 198,
	KEY_FREE_SPACE_EXTENT = 199,
	KEY_FREE_SPACE_BITMAP = 200,
	KEY_DEV_EXTENT = 204,
	KEY_DEV_ITEM = 216,
	KEY_CHUNK_ITEM = 228,
	KEY_RAID_STRIPE = 230,
	KEY_IDENTITY_REMAP = 234,
	KEY_REMAP = 235,
	KEY_REMAP_BACKREF = 236,
	KEY_QGROUP_STATUS = 240,
	KEY_QGROUP_INFO = 242,
	KEY_QGROUP_LIMIT = 244,
	KEY_QGROUP_RELATION = 246,
	KEY_TEMPORARY_ITEM = 248,	/* balance status */
	KEY_PERSISTENT_ITEM = 249,	/* device statistics */
	KEY_DEV_REPLACE = 250,
	KEY_UUID_SUBVOL = 251,
	KEY_UUID_RECEIVED_SUBVOL = 252,
	KEY_STRING_ITEM = 253,
};

#define BG_DATA (1ull << 0)
#define BG_SYSTEM (1ull << 1)
#define BG_METADATA (1ull << 2)
#define BG_RAID0 (1ull << 3)
#define BG_RAID1 (1ull << 4)
#define BG_DUP (1ull << 5)
#define BG_RAID10 (1ull << 6)
#define BG_RAID5 (1ull << 7)
#define BG_RAID6 (1ull << 8)
#define BG_RAID1C3 (1ull << 9)
#define BG_RAID1C4 (1ull << 10)
#define BG_REMAPPED (1ull << 11)
#define BG_METADATA_REMAP (1ull << 12)
#define BG_SINGLE (1ull << 48) /* where profiles are combined: in a chunk, single is the lack of the others */
#define BG_TYPE_MASK (BG_DATA | BG_SYSTEM | BG_METADATA | BG_METADATA_REMAP)
#define BG_PROFILE_MASK \
	(BG_RAID0 | BG_RAID1 | BG_DUP | BG_RAID10 | BG_RAID5 | BG_RAID6 | BG_RAID1C3 | BG_RAID1C4)

#endif
