/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_NAMES_H
#define BTRKIT_MODIFY_NAMES_H

/* Entries of directories, and what inodes know of their names. The locks of both inodes are held. */

#include "lib/format/items/dir.h"
#include "lib/modify/op.h"

struct name {
	const char *bytes;
	size_t len;
};

/* Whether a name may be given. @return 0; -EINVAL; -ENAMETOOLONG */
int name_judge(const struct name *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same of a name in @dir. Of one that is too long Linux first finds out that the directory is none. */
int name_judge_in(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * What comes of a new name that was refused with @ret. Linux looks up first what is in the way: an entry that lies
 * about its type is damage. With nothing locked. @return @ret; -EUCLEAN
 */
int name_in_the_way(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const struct name *name, int ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What a directory says of a name. */
struct name_entry {
	struct btrkit_key location; /* INODE_ITEM of an inode, or ROOT_ITEM of a subvolume */
	uint8_t type;		    /* FT_* */
};

/* The entry of a directory. @return 0; 1 there is none; <0 */
int name_find(struct op *op, const struct op_inode *dir, const struct name *name, struct name_entry *ret,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What an entry says of its inode decides what is done: it must be true. @return 0; -EUCLEAN */
int name_judge_type(const struct op *op, const struct op_inode *dir, const struct name *name,
		    const struct name_entry *entry, const struct op_inode *in,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * The inode that a name leads to, with the locks of both: who finds another one meanwhile looks again.
 * @return 0; 1: it is a subvolume, or the place of one, and only the directory is locked; -ENOTDIR; -ENOENT; <0
 */
int name_lock(struct op *op, uint64_t dir_inode, const struct name *name, struct op_inode *dir, struct op_inode *in,
	      struct name_entry *entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether a directory may get an entry of that name. @return 0; -ENOTDIR; -EEXIST; -EPERM; -EROFS; <0 */
int name_judge_new(struct op *op, const struct op_inode *dir, const struct name *name,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether the entry that was found of a name is a subvolume's. @return 0; 1: only the place of one; <0 */
int name_is_subvolume(struct op *op, const struct op_inode *dir, const struct name *name,
		      const struct name_entry *entry, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The index of an entry that no inode knows, by all that are there. @return 0; -EUCLEAN: there is none; <0 */
int name_find_index(struct op *op, const struct op_inode *dir, const struct name *name, uint64_t *ret,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether there is room for a name beside the others with its hash. @return 0; -EOVERFLOW; <0 */
int name_fits(struct op *op, const struct op_inode *dir, const struct name *name,
	      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * A new entry at an index that delayed_next_index() gave, and its size added to that of the directory, whose item the
 * caller puts back. The name is not there and fits. @return 0; <0
 */
int name_add(struct op *op, struct op_inode *dir, const struct name *name, const struct name_entry *entry,
	     uint64_t index, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The entry goes. @return 0; -EUCLEAN: there is none; <0 */
int name_remove(struct op *op, struct op_inode *dir, const struct name *name, uint64_t index,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * An inode gets to know a name of its: by an INODE_REF, or when that is full an INODE_EXTREF. @fresh: it has none in
 * that directory yet. There is room. @return 0; <0
 */
int name_ref_add(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t index, bool fresh,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether there is room for that. @return 0; -EMLINK; <0 */
int name_ref_fits(struct op *op, uint64_t inode, uint64_t dir, const struct name *name,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* It forgets it. @index gets that of the entry. @return 0; -EUCLEAN: it does not know the name; <0 */
int name_ref_remove(struct op *op, uint64_t inode, uint64_t dir, const struct name *name, uint64_t *index,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
