/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_NAMES_H
#define BTRKIT_MODIFY_NAMES_H

/*
 * Directory entries, and the references to them in inodes. The locks of both inodes are held.
 *
 * The stub of a subvolume is the empty directory that a snapshot has where its source has a nested subvolume.
 */

#include "lib/format/items/files/dir.h"
#include "lib/modify/op.h"

struct name {
	const char *bytes;
	size_t len;
};

/* Checks whether a name is valid. @return 0; -EINVAL; -ENAMETOOLONG */
int name_check(const struct name *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In lookup.c: */
/*
 * Like name_check(), for a name in @dir. As in Linux, -ENOTDIR and -ENOENT for @dir take precedence over -ENAMETOOLONG.
 */
int name_check_in(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Determines the final result of an operation that was refused with @ret for a new name. Linux looks up the existing
 * entry first: if that has the wrong type, the error is -EUCLEAN instead of -EEXIST. Call with nothing locked.
 * @return @ret; -EUCLEAN
 */
int name_in_the_way(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name, int ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A directory entry. */
struct name_entry {
	struct btrkit_key location; /* INODE_ITEM of an inode, or ROOT_ITEM of a subvolume */
	uint8_t type;		    /* FT_* */
};

/* In names.c: */
/* Finds the entry of a name. @return 0; 1: there is none; <0 */
int name_find(struct op *op, const struct op_inode *dir, const struct name *name, struct name_entry *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In lookup.c: */
/* Checks that the file type in an entry matches the inode: callers rely on it. @return 0; -EUCLEAN */
int name_check_type(const struct op *op, const struct op_inode *dir, const struct name *name,
		    const struct name_entry *entry, const struct op_inode *in,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finds and locks the inode that a name leads to, and its directory. Repeats the lookup if the entry changed while the
 * locks were taken.
 * @return 0; 1: it is a subvolume or the stub of one, and only the directory is locked; -ENOTDIR; -ENOENT; <0
 */
int name_lock(struct op *op, uint64_t dir_inode, const struct name *name, struct op_inode *dir, struct op_inode *in,
	      struct name_entry *entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In names.c: */
/* Checks whether a name can be added to a directory. @return 0; -ENOTDIR; -EEXIST; -EPERM; -EROFS; <0 */
int name_check_new(struct op *op, const struct op_inode *dir, const struct name *name,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether an entry found in @dir is that of a subvolume. @return 0; 1: only the stub of one; <0 */
int name_is_subvolume(struct op *op, const struct op_inode *dir, const struct name *name,
		      const struct name_entry *entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finds the index of an entry without a reference from an inode, by searching the directory.
 * @return 0; -EUCLEAN: there is none; <0
 */
int name_find_index(struct op *op, const struct op_inode *dir, const struct name *name, uint64_t *ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Checks whether there is room for a name in the item of its hash. @return 0; -EOVERFLOW; <0 */
int name_fits(struct op *op, const struct op_inode *dir, const struct name *name,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Adds an entry at an index from delayed_next_index(). The name must be new and fit. Updates the size of the directory
 * in @dir; the caller writes that back. @return 0; <0
 */
int name_add(struct op *op, struct op_inode *dir, const struct name *name, const struct name_entry *entry,
	     uint64_t index, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes an entry. @return 0; -EUCLEAN: there is none; <0 */
int name_remove(struct op *op, struct op_inode *dir, const struct name *name, uint64_t index,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Adds a reference to a name to its inode: to an INODE_REF, or if that is full to an INODE_EXTREF. It must fit. @fresh:
 * the inode has no references to that directory yet. @return 0; <0
 */
int name_ref_add(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t index, bool fresh,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Checks whether a reference fits. @return 0; -EMLINK; <0 */
int name_ref_fits(struct op *op, uint64_t inode, uint64_t dir, const struct name *name,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Removes the reference to a name; @index: the index of the entry. @return 0; -EUCLEAN: there is none; <0 */
int name_ref_remove(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t *index,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
