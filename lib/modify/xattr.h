/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_XATTR_H
#define BTRKIT_MODIFY_XATTR_H

/* Extended attributes as items. Names and values are not checked here. The inode's lock is held. */

#include "lib/format/attribute.h"
#include "lib/modify/names/entries.h"

/* The bytes of an attribute, including the header of its item. */
static inline uint32_t xattr_bytes(size_t name_len, size_t size)
{
	return (uint32_t)(sizeof(struct disk_item) + sizeof(struct disk_dir_item) + name_len + size);
}

/*
 * Finds an attribute. The result is valid until the reader is used again or something is changed. @return 0; 1: not
 * found; <0
 */
int xattr_find(struct op *op, uint64_t inode, const char *name, struct dir_entry *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Attributes that are looked up often, and are mostly absent. */
enum xattr_note { XATTR_DEFAULT_ACL = 1 << 0, XATTR_HAS_CAPABILITY = 1 << 1 };
/* Like xattr_find(), but remembers if the attribute is absent. */
int xattr_find_noted(struct op *op, uint64_t inode, enum xattr_note note, struct dir_entry *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Checks whether a value fits, next to attributes whose names have the same hash. @return 0; -ENOSPC; <0 */
int xattr_fits(struct op *op, uint64_t inode, const char *name, size_t size,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Sets the attribute, whether it exists or not. The value must fit. */
int xattr_put(struct op *op, uint64_t inode, const char *name, const void *value, size_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @return 0; 1: not found; <0 */
int xattr_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes security.capability, as any change to a file does. */
int xattr_drop_capability(struct op *op, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In property.c: */
/* The property btrfs.compression: checks a value. @return 0; -EINVAL */
int property_check(const struct op_inode *in, const void *value, size_t size,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the property has a meaning for an inode. */
bool property_matters(const struct op_inode *in);
/* Sets the inode flags and the incompatible feature for a value. Size 0: the property is removed. */
void property_apply(struct op *op, struct disk_inode_item *item, const void *value, size_t size);
/* Gets the value that new inodes in a directory inherit. @return 0; 1: none; <0 */
int property_inherited(struct op *op, const struct op_inode *dir, const char **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
