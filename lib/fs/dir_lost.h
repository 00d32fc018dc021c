/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DIR_LOST_H
#define BTRKIT_FS_DIR_LOST_H

/*
 * Finds names whose DIR_INDEX items are lost. Their DIR_ITEM items have other keys and thus mostly other leaves, and
 * the INODE_REF of the inode, or the ROOT_REF of the subvolume, says which index a name has. If names are missing even
 * then by the size of the directory, all references in the tree are read for those whose DIR_ITEM is lost, too.
 */

#include <btrkit/inode.h>

#include "lib/base/array.h"
#include "lib/tree/cursor.h"

struct dir_lost {
	struct array ranges; /* struct sweep_lost: the indexes of lost items, in ascending order */
	uint64_t block;	     /* the last one that could not be read; 0: none. It is not reported twice */
	uint64_t hash;	     /* where the search in DIR_ITEM items continues */
	unsigned nth;	     /* entry of that item */
	uint64_t found;	     /* names */
	uint64_t by_ref;     /* names that only an INODE_REF or INODE_EXTREF has */
	struct btrkit_key at; /* where the search for these continues; 0 0 0: it has not begun */
	bool refs_done;
	uint64_t unknown;    /* entries that may be lost ones, but have no reference that can be read */
	uint64_t bytes;	     /* of all names that were given, also those with an index: the caller adds these */
	bool done;
};

/*
 * After the entries of @dir have been read as far as that is possible: gets the next one with a lost index. There is
 * none if nothing was lost. The name is valid until the cursor moves.
 * @return 0; 1: no more entries; -ENOMEM; <0: what else is lost, or in the end how many names were found and
 * whether some are missing: call again
 */
int dir_lost_next(struct cursor *c, uint64_t dir, struct dir_lost *l, struct btrkit_dir_entry *ret,
		  struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dir_lost_release(struct dir_lost *l);

#endif
