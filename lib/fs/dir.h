/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_DIR_H
#define BTRKIT_FS_DIR_H

#include <btrkit/inode.h>

#include "lib/fs/dir_lost.h"
#include "lib/tree/cursor.h"

struct dir_entry;

/*
 * Converts the entry @d of the directory whose item the cursor is at, with that index. The name is that of the item.
 * @return 0; <0
 */
int dir_entry_describe(const struct cursor *c, const struct dir_entry *d, uint64_t index, struct btrkit_dir_entry *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds the first entry of directory @inode in the tree of @c with an index of at least @index. The name is valid until
 * the cursor moves.
 * @return 0; 1: there is none; <0
 */
int dir_entry_from(struct cursor *c, uint64_t inode, uint64_t index, struct btrkit_dir_entry *ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * After dir_entry_from(@index) failed: finds the index from which entries can be read again, and adds to the message
 * which items are missing, and to @lost. @return 0; 1: there are none behind; -ENOMEM
 */
int dir_entries_behind(const struct cursor *c, uint64_t inode, uint64_t index, uint64_t *next,
		       struct dir_lost *lost, struct btrkit_error *what) BTRKIT_MUST_CHECK;

#endif
