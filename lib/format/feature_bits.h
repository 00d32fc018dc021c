/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_FEATURE_BITS_H
#define BTRKIT_FORMAT_FEATURE_BITS_H

/* The feature bits of a superblock. */

#define COMPAT_RO_FREE_SPACE_TREE (1ull << 0)
#define COMPAT_RO_FREE_SPACE_TREE_VALID (1ull << 1)
#define COMPAT_RO_VERITY (1ull << 2)
#define COMPAT_RO_BLOCK_GROUP_TREE (1ull << 3)

#define INCOMPAT_MIXED_BACKREF (1ull << 0)
#define INCOMPAT_DEFAULT_SUBVOL (1ull << 1)
#define INCOMPAT_MIXED_GROUPS (1ull << 2)
#define INCOMPAT_COMPRESS_LZO (1ull << 3)
#define INCOMPAT_COMPRESS_ZSTD (1ull << 4)
#define INCOMPAT_BIG_METADATA (1ull << 5)
#define INCOMPAT_EXTENDED_IREF (1ull << 6)
#define INCOMPAT_RAID56 (1ull << 7)
#define INCOMPAT_SKINNY_METADATA (1ull << 8)
#define INCOMPAT_NO_HOLES (1ull << 9)
#define INCOMPAT_METADATA_UUID (1ull << 10)
#define INCOMPAT_RAID1C34 (1ull << 11)
#define INCOMPAT_ZONED (1ull << 12)
#define INCOMPAT_EXTENT_TREE_V2 (1ull << 13)
#define INCOMPAT_RAID_STRIPE_TREE (1ull << 14)
#define INCOMPAT_SIMPLE_QUOTA (1ull << 16)
#define INCOMPAT_REMAP_TREE (1ull << 17)

#endif
