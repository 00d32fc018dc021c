/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_EXTENT_H
#define BTRKIT_FORMAT_ITEMS_EXTENT_H

/* EXTENT_ITEM and METADATA_ITEM with their inline references, and keyed references. */

#include "lib/format/item.h"

#define EXTENT_FLAG_DATA (1ull << 0)
#define EXTENT_FLAG_TREE_BLOCK (1ull << 1)
#define EXTENT_FLAG_FULL_BACKREF (1ull << 8)

struct disk_extent_item {
	le64 refs;
	le64 generation;
	le64 flags;
};
DISK_ASSERT_SIZE(disk_extent_item, 24);
DISK_ASSERT_AT(disk_extent_item, generation, 8);
DISK_ASSERT_AT(disk_extent_item, flags, 16);

/* Follows the extent item of a tree block, except in a METADATA_ITEM. */
struct disk_tree_block_info {
	struct disk_key key;
	uint8_t level;
};
DISK_ASSERT_SIZE(disk_tree_block_info, 18);
DISK_ASSERT_AT(disk_tree_block_info, level, 17);

struct disk_extent_data_ref {
	le64 root;
	le64 objectid;
	le64 offset;
	le32 count;
};
DISK_ASSERT_SIZE(disk_extent_data_ref, 28);
DISK_ASSERT_AT(disk_extent_data_ref, objectid, 8);
DISK_ASSERT_AT(disk_extent_data_ref, offset, 16);
DISK_ASSERT_AT(disk_extent_data_ref, count, 24);

/* A reference to an extent, in any form. */
struct extent_ref {
	uint8_t type;		/* KEY_TREE_BLOCK_REF, KEY_SHARED_BLOCK_REF, KEY_EXTENT_DATA_REF, ... */
	uint64_t root;		/* tree block, extent data and owner references */
	uint64_t parent;	/* shared references */
	uint64_t objectid;	/* extent data references: the inode */
	uint64_t offset;	/* extent data references: file offset minus extent offset, modulo 2^64 */
	uint32_t count;		/* data references; 1 for the others */
};

struct extent_item {
	uint64_t bytenr;
	uint64_t num_bytes;	/* nodesize for METADATA_ITEM */
	uint64_t refs;
	uint64_t generation;
	uint64_t flags;
	uint8_t level;		/* of tree blocks */
	/* Inline references that have not been read yet. */
	const uint8_t *pos, *end;
};

int extent_item_decode(const struct item_ctx *ctx, const struct item *item, struct extent_item *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads the next inline reference. @return 0: a reference; 1: no more references; -EUCLEAN */
int extent_item_next_ref(struct extent_item *ei, struct extent_ref *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Size of an inline reference, 0 for an invalid type. */
size_t extent_inline_ref_size(uint8_t type);
/* Writes an inline reference; it has extent_inline_ref_size() bytes. */
void extent_inline_ref_put(const struct extent_ref *ref, uint8_t *to);
/* Encodes a data reference, either keyed or inline after its type. */
static inline struct disk_extent_data_ref extent_data_ref_put(const struct extent_ref *ref)
{
	return (struct disk_extent_data_ref){ le64_put(ref->root), le64_put(ref->objectid), le64_put(ref->offset),
					      le32_put(ref->count) };
}

/* In extent_ref.c: */
/* Decodes a keyed reference. */
int extent_keyed_ref_decode(const struct item *item, struct extent_ref *ret,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Decodes root, inode, offset and count of a data reference. */
static inline void extent_data_ref_get(const struct disk_extent_data_ref *d, struct extent_ref *ret)
{
	ret->root = le64_get(d->root);
	ret->objectid = le64_get(d->objectid);
	ret->offset = le64_get(d->offset);
	ret->count = le32_get(d->count);
}

/* The key offset of an EXTENT_DATA_REF. */
uint64_t extent_data_ref_hash(uint64_t root, uint64_t objectid, uint64_t offset);

/* Sort key of the inline references of one type. Linux sorts them in descending order. */
uint64_t extent_ref_sequence(const struct extent_ref *ref);

/* Validates the values of a decoded reference. @return 0 or -EUCLEAN */
int extent_ref_check(const struct item_ctx *ctx, const struct extent_ref *ref,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Validates the order of inline references: initialize with extent_ref_order_start(), and call extent_ref_in_order()
 * for each reference. @return 0 or -EUCLEAN
 */
struct extent_ref_order {
	uint8_t type;
	uint64_t sequence;
};

struct extent_ref_order extent_ref_order_start(void);
int extent_ref_in_order(struct extent_ref_order *order, const struct extent_ref *ref,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_extent;
extern const struct item_type item_type_metadata;
extern const struct item_type item_type_tree_block_ref;
extern const struct item_type item_type_shared_block_ref;
extern const struct item_type item_type_extent_data_ref;
extern const struct item_type item_type_shared_data_ref;
extern const struct item_type item_type_extent_owner_ref;

#endif
