/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_RENAME_H
#define BTRKIT_MODIFY_RENAME_H

/* A renaming: rename.c finds what has to do with it among others, rename_alone.c by who is alone. */

#include "lib/modify/remove.h"
#include "lib/modify/roots.h"

enum rename_what {
	RENAME_INODE,
	RENAME_SUBVOLUME,
	RENAME_PLACE /* of a subvolume that a snapshot has not taken along */
};

/* One of the two names. */
struct rename_side {
	struct op *op; /* on the subvolume of the directory */
	struct op_inode *dir;
	struct name name;
	struct name_entry entry;
	bool there;
	enum rename_what what;
	bool read_only;	    /* a subvolume that is */
	struct op_inode in; /* what has the name: of a subvolume its directory, of a place nothing */
};

struct renaming {
	struct op op[2]; /* the second is not used when both directories are in one subvolume */
	unsigned flags;
	struct op_inode dir[2]; /* the second is not used when it is the first */
	struct rename_side from, to;
};

#define RENAME_ITEMS (16 + REMOVE_ITEMS)
static inline uint32_t rename_bytes(const struct btrkit_place *from, const struct btrkit_place *to)
{
	return (uint32_t)(8 * 64 + 4 * (from->len + to->len));
}

/* The inode that an entry leads to. @return 0; -EUCLEAN: it is not of the entry's type; <0 */
int rename_get_inode(struct rename_side *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The directory that a directory is in. Only who renames changes that. @return 0; -ENOENT; <0 */
int rename_parent(struct op *op, uint64_t inode, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Something would be in itself. @above: what is at the new name is what the other thing is in. @return <0 */
int rename_loops(const struct renaming *r, bool above, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Everything else that can keep it from being done, when both sides are found. @return 0; <0 */
int rename_judge(struct renaming *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* @orphan: what had the new name is to be removed by remove_orphan() */
int rename_do(struct renaming *r, bool *orphan, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* All of it, if a subvolume may have to do with it. */
int rename_alone(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		 unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
