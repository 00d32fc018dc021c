/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_EXTENTS_H
#define BTRKIT_DUMP_DUMP_TREE_EXTENTS_H

/* The data extents of a file, to select what describes them. */

#include "lib/dump/dump_tree_pick.h"
#include "lib/tree/filesystem.h"

/* Collects the data extents of inode @inode in a tree (0: all requested trees), see struct dump_select. */
int dump_select_extents(struct btrkit_fs *fs, const struct btrkit_dump_options *o, uint64_t tree, uint64_t inode,
			struct dump_data **ret, size_t *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
