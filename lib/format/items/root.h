/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_ROOT_H
#define BTRKIT_FORMAT_ITEMS_ROOT_H

#include "lib/format/item.h"
#include "lib/format/items/files/inode.h"

#define ROOT_SUBVOL_RDONLY (1ull << 0)
#define ROOT_SUBVOL_DEAD (1ull << 48)

struct disk_root_item {
	struct disk_inode_item inode;
	le64 generation;
	le64 root_dirid;
	le64 bytenr;
	le64 byte_limit;
	le64 bytes_used;
	le64 last_snapshot;
	le64 flags;
	le32 refs;
	struct disk_key drop_progress;
	uint8_t drop_level;
	uint8_t level;
	le64 generation_v2;
	uint8_t uuid[16], parent_uuid[16], received_uuid[16];
	le64 ctransid, otransid, stransid, rtransid;
	struct disk_time ctime, otime, stime, rtime;
	le64 reserved[8];
};
DISK_ASSERT_SIZE(disk_root_item, 439);
DISK_ASSERT_AT(disk_root_item, generation, 160);
DISK_ASSERT_AT(disk_root_item, root_dirid, 168);
DISK_ASSERT_AT(disk_root_item, bytenr, 176);
DISK_ASSERT_AT(disk_root_item, byte_limit, 184);
DISK_ASSERT_AT(disk_root_item, bytes_used, 192);
DISK_ASSERT_AT(disk_root_item, last_snapshot, 200);
DISK_ASSERT_AT(disk_root_item, flags, 208);
DISK_ASSERT_AT(disk_root_item, refs, 216);
DISK_ASSERT_AT(disk_root_item, drop_progress, 220);
DISK_ASSERT_AT(disk_root_item, drop_level, 237);
DISK_ASSERT_AT(disk_root_item, level, 238);
DISK_ASSERT_AT(disk_root_item, generation_v2, 239);
DISK_ASSERT_AT(disk_root_item, uuid, 247);
DISK_ASSERT_AT(disk_root_item, parent_uuid, 263);
DISK_ASSERT_AT(disk_root_item, received_uuid, 279);
DISK_ASSERT_AT(disk_root_item, ctransid, 295);
DISK_ASSERT_AT(disk_root_item, otransid, 303);
DISK_ASSERT_AT(disk_root_item, stransid, 311);
DISK_ASSERT_AT(disk_root_item, rtransid, 319);
DISK_ASSERT_AT(disk_root_item, ctime, 327);
DISK_ASSERT_AT(disk_root_item, otime, 339);
DISK_ASSERT_AT(disk_root_item, stime, 351);
DISK_ASSERT_AT(disk_root_item, rtime, 363);
DISK_ASSERT_AT(disk_root_item, reserved, 375);
#define ROOT_ITEM_SHORT 239	/* size of the item as written by Linux before 3.6 */
#define ROOT_INODE_SIZE 3	/* the size in its inode item, which Linux writes and never reads */

/* Followed by the name. */
struct disk_root_ref {
	le64 dirid;
	le64 sequence;
	le16 name_len;
};
DISK_ASSERT_SIZE(disk_root_ref, 18);
DISK_ASSERT_AT(disk_root_ref, sequence, 8);
DISK_ASSERT_AT(disk_root_ref, name_len, 16);

struct root_item {
	struct inode_item inode;
	uint64_t generation;
	uint64_t root_dirid;
	uint64_t bytenr;
	uint64_t byte_limit, bytes_used;
	uint64_t last_snapshot;
	uint64_t flags;
	uint32_t refs;
	struct btrkit_key drop_progress;
	uint8_t drop_level;
	uint8_t level;
	/* The rest is zero in items from Linux before 3.6 (short items, or generation_v2 differs from generation). */
	uint64_t generation_v2;
	uint8_t uuid[16], parent_uuid[16], received_uuid[16];
	uint64_t ctransid, otransid, stransid, rtransid;
	struct disk_time ctime, otime, stime, rtime;
};

/* Reads the item without validating it. @return false: it is too short */
bool root_item_read(const struct item *item, struct root_item *ret);

int root_item_decode(const struct item_ctx *ctx, const struct item *item, struct root_item *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* ROOT_REF and ROOT_BACKREF. */
struct root_ref {
	uint64_t dirid;
	uint64_t sequence;
	const uint8_t *name;
	uint16_t name_len;
};

/* In root_ref.c: */
int root_ref_decode(const struct item *item, struct root_ref *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_root;
extern const struct item_type item_type_root_ref;
extern const struct item_type item_type_root_backref;

#endif
