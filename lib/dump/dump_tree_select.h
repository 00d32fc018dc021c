/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_SELECT_H
#define BTRKIT_DUMP_DUMP_TREE_SELECT_H

/* Converts struct btrkit_dump_select to selections for each tree. */

#include "lib/dump/dump_tree_pick.h"
#include "lib/dump/dump_tree_walk.h"

struct ranges {
	struct btrkit_dump_range *at;
	size_t n;
};

struct dump_select {
	bool any;	/* there is a selection; otherwise everything is shown */
	bool picks;	/* items are selected */
	bool of_files;	/* by inode: without requested trees, only file trees are shown */
	bool with_extents;
	uint64_t tree;	/* only this tree, plus the trees with its extents; 0: by options */
	bool filters;
	struct dump_blocks blocks;
	/* Selected items of trees. extents and csums are only used with with_extents. */
	struct dump_pick pick;
	struct dump_pick extents, csums;
	struct ranges asked, extent_ranges, csum_ranges;
	struct dump_data *data;
	size_t num_data;
};

/* Call dump_select_end() in any case. @return 0; -EINVAL; -ENOENT: no such path; -ENOMEM; <0 */
int dump_select_begin(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump_select *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_select_end(struct dump_select *s);

/*
 * Set which parts of a tree to show. @named: the caller requested the tree. @log: the tree is in the log. @return
 * false: nothing
 */
bool dump_select_tree(const struct dump_select *s, uint64_t id, bool named, bool log, struct dump_what *what);

#endif
