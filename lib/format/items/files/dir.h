/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_DIR_H
#define BTRKIT_FORMAT_ITEMS_DIR_H

#include "lib/format/item.h"

/* Followed by the name and the data. */
struct disk_dir_item {
	struct disk_key location;
	le64 transid;
	le16 data_len;
	le16 name_len;
	uint8_t type;
};
DISK_ASSERT_SIZE(disk_dir_item, 30);
DISK_ASSERT_AT(disk_dir_item, transid, 17);
DISK_ASSERT_AT(disk_dir_item, data_len, 25);
DISK_ASSERT_AT(disk_dir_item, name_len, 27);
DISK_ASSERT_AT(disk_dir_item, type, 29);

/* An entry of a DIR_ITEM, DIR_INDEX or XATTR_ITEM. */
struct dir_entry {
	struct btrkit_key location;
	uint64_t transid;
	uint8_t type;		/* FT_*, without the encryption bit */
	bool encrypted;
	const uint8_t *name;
	uint16_t name_len;
	const uint8_t *data;	/* value of an xattr */
	uint16_t data_len;
};

enum dir_entry_type { FT_UNKNOWN, FT_REG, FT_DIR, FT_CHR, FT_BLK, FT_FIFO, FT_SOCK, FT_SYMLINK, FT_XATTR };

/* The type in directory entries of an inode with @mode; FT_UNKNOWN if the mode is invalid. */
uint8_t dir_type_of_mode(uint32_t mode);
/* DT_* of readdir(3); DT_UNKNOWN for a type that directory entries cannot have. */
uint8_t dir_type_to_dirent(uint8_t type);

struct dir_iter {
	const uint8_t *pos, *end;
};

struct dir_iter dir_first(const struct item *item);
/* @return 0: an entry; 1: no more entries; -EUCLEAN */
int dir_next(struct dir_iter *it, struct dir_entry *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Whether a file may have this name, regardless of the length: not empty, "." or "..", without slashes and null bytes.
 */
bool dir_name_possible(const void *name, size_t len);

/* The key offset of the name's DIR_ITEM or XATTR_ITEM. */
uint64_t dir_name_hash(const void *name, size_t len);

extern const struct item_type item_type_dir_item;
extern const struct item_type item_type_dir_index;
extern const struct item_type item_type_xattr;

#endif
