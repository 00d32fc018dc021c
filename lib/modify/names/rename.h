/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_RENAME_H
#define BTRKIT_MODIFY_RENAME_H

/*
 * Renames. rename.c does those that run along with other operations, rename_exclusive.c the exclusive ones. What they
 * have in common: rename_find.c finds both sides, and rename_sides.c checks and changes them.
 */

#include "lib/modify/names/remove.h"
#include "lib/modify/roots.h"

enum rename_what {
	RENAME_INODE,
	RENAME_SUBVOLUME,
	RENAME_PLACE /* the stub of a subvolume that was not included in a snapshot */
};

/* One of the two names. */
struct rename_side {
	struct op *op; /* on the subvolume of the directory */
	struct op_inode *dir;
	struct name name;
	struct name_entry entry;
	bool there;
	enum rename_what what;
	bool read_only;	    /* a read-only subvolume */
	struct op_inode in; /* the inode with the name; for a subvolume its root directory, for a stub unused */
};

struct renaming {
	struct op op[2]; /* the second is unused if both directories are in one subvolume */
	unsigned flags;
	struct op_inode dir[2]; /* the second is unused if both are the same */
	struct rename_side from, to;
};

#define RENAME_ITEMS (16 + REMOVE_ITEMS)
static inline uint32_t rename_bytes(const struct btrkit_place *from, const struct btrkit_place *to)
{
	return (uint32_t)(8 * 64 + 4 * (from->len + to->len));
}

/* In rename_sides.c: */
/* Reads the inode that an entry leads to. @return 0; -EUCLEAN: its type differs from that in the entry; <0 */
int rename_get_inode(struct rename_side *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Besides 0 and errors, the result of looking for a side. */
enum rename_result {
	RENAME_EXCLUSIVE = 2 /* an entry does not lead to an inode: the rename has to be an exclusive operation */
};

/* In rename_find.c: */
/*
 * Reads both directories, whose numbers are known, and finds the entries in them. @exclusive: this is an exclusive
 * operation, which reads the inodes and subvolumes, too.
 * @return 0; RENAME_EXCLUSIVE, unless this is; -ENOTDIR; <0
 */
int rename_find(struct renaming *r, bool exclusive, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Refuses to put a directory into itself. Unless the operation is exclusive, call it with the lock of renames, and no
 * others.
 * @return 0; -EINVAL; -ENOTEMPTY: what has the new name is an ancestor of the other; <0
 */
int rename_check_loops(const struct renaming *r, bool exclusive, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In rename_sides.c: */
/* Checks everything else, once both sides are found. @return 0; <0 */
int rename_check(struct renaming *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @orphan: the caller removes what had the new name with remove_orphan() */
int rename_do(struct renaming *r, bool *orphan, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In rename_exclusive.c: */
/* Does a rename that may involve subvolumes, as an exclusive operation. */
int rename_exclusive(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		     unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
