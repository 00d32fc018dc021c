/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_XATTR_H
#define BTRKIT_MODIFY_XATTR_H

/* Extended attributes as items: nothing here judges names or values. The inode's lock is held. */

#include "lib/format/attribute.h"
#include "lib/modify/entries.h"

/* Bytes that come with one, its item's header besides. */
static inline uint32_t xattr_bytes(size_t name_len, size_t size)
{
	return (uint32_t)(sizeof(struct disk_item) + sizeof(struct disk_dir_item) + name_len + size);
}

/* Valid until the reader is used again or something is changed. @return 0; 1 there is none; <0 */
int xattr_find(struct op *op, uint64_t inode, const char *name, struct dir_entry *ret,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Those that are asked for often, and are mostly not there. */
enum xattr_note { XATTR_DEFAULT_ACL = 1 << 0, XATTR_HAS_CAPABILITY = 1 << 1 };
/* The same, but remembers that it is not there. */
int xattr_find_noted(struct op *op, uint64_t inode, enum xattr_note note, struct dir_entry *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether a value fits beside the attributes whose names have the same hash. @return 0; -ENOSPC; <0 */
int xattr_fits(struct op *op, uint64_t inode, const char *name, size_t size,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Gives the attribute a value that fits, whether it is there or not. */
int xattr_put(struct op *op, uint64_t inode, const char *name, const void *value, size_t size,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @return 0; 1 there is none; <0 */
int xattr_drop(struct op *op, uint64_t inode, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What a file is capable of is gone when it is changed. */
int xattr_drop_capability(struct op *op, uint64_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The property btrfs.compression: whether a value may be given. @return 0; -EINVAL */
int property_judge(const struct op_inode *in, const void *value, size_t size,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Which inodes it means anything to. */
bool property_matters(const struct op_inode *in);
/* What a value says to the flags of an inode, and what to the features. No bytes: the property goes. */
void property_apply(struct op *op, struct disk_inode_item *item, const void *value, size_t size);
/* The value that new inodes in a directory get. @return 0; 1 they get none; <0 */
int property_inherited(struct op *op, const struct op_inode *dir, const char **ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
