/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_INODE_H
#define BTRKIT_FORMAT_ITEMS_INODE_H

#include "lib/format/item.h"

struct disk_time {
	le64 sec;
	le32 nsec;
};
DISK_ASSERT_SIZE(disk_time, 12);
DISK_ASSERT_AT(disk_time, nsec, 8);

struct disk_inode_item {
	le64 generation;
	le64 transid;
	le64 size;
	le64 nbytes;
	le64 block_group;
	le32 nlink;
	le32 uid;
	le32 gid;
	le32 mode;
	le64 rdev;
	le64 flags;
	le64 sequence;
	le64 reserved[4];
	struct disk_time atime, ctime, mtime, otime;
};
DISK_ASSERT_SIZE(disk_inode_item, 160);
DISK_ASSERT_AT(disk_inode_item, transid, 8);
DISK_ASSERT_AT(disk_inode_item, size, 16);
DISK_ASSERT_AT(disk_inode_item, nbytes, 24);
DISK_ASSERT_AT(disk_inode_item, block_group, 32);
DISK_ASSERT_AT(disk_inode_item, nlink, 40);
DISK_ASSERT_AT(disk_inode_item, uid, 44);
DISK_ASSERT_AT(disk_inode_item, gid, 48);
DISK_ASSERT_AT(disk_inode_item, mode, 52);
DISK_ASSERT_AT(disk_inode_item, rdev, 56);
DISK_ASSERT_AT(disk_inode_item, flags, 64);
DISK_ASSERT_AT(disk_inode_item, sequence, 72);
DISK_ASSERT_AT(disk_inode_item, reserved, 80);
DISK_ASSERT_AT(disk_inode_item, atime, 112);
DISK_ASSERT_AT(disk_inode_item, ctime, 124);
DISK_ASSERT_AT(disk_inode_item, mtime, 136);
DISK_ASSERT_AT(disk_inode_item, otime, 148);

/* NODATASUM (bit 0) to COMPRESS (bit 11), and ROOT_ITEM_INIT (bit 31). */
#define INODE_FLAGS_KNOWN 0x80000fffull
#define INODE_NODATASUM (1u << 0)
#define INODE_NODATACOW (1u << 1)
#define INODE_NOCOMPRESS (1u << 3)
#define INODE_PREALLOC (1u << 4)
#define INODE_SYNC (1u << 5)
#define INODE_IMMUTABLE (1u << 6)
#define INODE_APPEND (1u << 7)
#define INODE_NODUMP (1u << 8)
#define INODE_NOATIME (1u << 9)
#define INODE_DIRSYNC (1u << 10)
#define INODE_COMPRESS (1u << 11)
#define INODE_ROOT_ITEM_INIT (1u << 31) /* in a root item: its flags and byte_limit are valid */
#define INODE_VERITY (1ull << 32)

/* Whether a device number is valid: Linux has 12 bits for the major and 20 bits for the minor number. */
static inline bool rdev_possible(uint64_t major, uint64_t minor)
{
	return major < 1u << 12 && minor < 1u << 20;
}

static inline uint32_t rdev_join(uint32_t major, uint32_t minor)
{
	return major << 20 | minor;
}

/* Both are followed by the name. */
struct disk_inode_ref {
	le64 index;
	le16 name_len;
};
DISK_ASSERT_SIZE(disk_inode_ref, 10);
DISK_ASSERT_AT(disk_inode_ref, name_len, 8);

struct disk_inode_extref {
	le64 parent;
	le64 index;
	le16 name_len;
};
DISK_ASSERT_SIZE(disk_inode_extref, 18);
DISK_ASSERT_AT(disk_inode_extref, index, 8);
DISK_ASSERT_AT(disk_inode_extref, name_len, 16);

struct inode_item {
	uint64_t generation, transid;
	uint64_t size, nbytes;
	uint64_t block_group;
	uint32_t nlink, uid, gid, mode;
	uint64_t rdev;
	uint64_t flags;
	uint64_t sequence;
	struct disk_time atime, ctime, mtime, otime;
};

/* Reads the struct without validating it. Also used for the inode in a root item. */
void inode_item_get(const struct disk_inode_item *d, struct inode_item *ret);
int inode_item_decode(const struct item_ctx *ctx, const struct item *item, struct inode_item *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Iterates over the names of an INODE_REF or INODE_EXTREF. Starts with inode_ref_first(); names point into the item. */
struct inode_ref {
	uint64_t parent;
	uint64_t index;
	const uint8_t *name;
	uint16_t name_len;
};

struct inode_ref_iter {
	const uint8_t *pos, *end;
	uint64_t parent;	/* of an INODE_REF: the key's offset */
	bool extended;
};

/* In inode_ref.c: */
struct inode_ref_iter inode_ref_first(const struct item *item);
/* @return 0: a name; 1: no more names; -EUCLEAN */
int inode_ref_next(struct inode_ref_iter *it, struct inode_ref *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Prints inode flags as names in text, as a number in JSON. */
struct emit;

/* In inode.c: */
void inode_flags_emit(struct emit *e, const char *name, const char *words, uint64_t flags);

/* Renders the fields of an inode, also for the inode in a root item (JSON only). */
void inode_fields_render(struct emit *e, const struct disk_inode_item *d);

extern const struct item_type item_type_inode;
extern const struct item_type item_type_inode_ref;
extern const struct item_type item_type_inode_extref;

#endif
