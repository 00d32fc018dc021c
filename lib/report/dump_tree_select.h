/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DUMP_TREE_SELECT_H
#define BTRKIT_REPORT_DUMP_TREE_SELECT_H

/* What is asked for by struct btrkit_dump_select, as what is to be shown of each tree. */

#include "lib/report/dump_tree.h"

struct ranges {
	struct btrkit_dump_range *at;
	size_t n;
};

struct dump_select {
	bool any;	/* something is chosen; else all is shown */
	bool picks;	/* items are */
	bool of_files;	/* an inode: of trees that nobody named only those of files */
	bool with_extents;
	uint64_t tree;	/* that alone, and what has its extents; 0: see the options */
	bool filters;
	struct dump_blocks blocks;
	/* What is picked of trees; in the second and third line with_extents. */
	struct dump_pick pick;
	struct dump_pick extents, csums;
	struct ranges asked, extent_ranges, csum_ranges;
	struct dump_data *data;
	size_t num_data;
};

/* dump_select_end() follows in any case. @return 0; -EINVAL; -ENOENT: no such path; -ENOMEM; <0 */
int dump_select_begin(struct btrkit_fs *fs, const struct btrkit_dump_options *o, struct dump_select *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;
void dump_select_end(struct dump_select *s);

/* Fills in what of a tree is shown. @named: by who asks. @log: it belongs to the log. @return false: nothing */
bool dump_select_tree(const struct dump_select *s, uint64_t id, bool named, bool log, struct dump_what *what);

/* The data extents of inode @inode in a tree, as they are found. @list: see struct dump_select */
int dump_select_extents(struct btrkit_fs *fs, const struct btrkit_dump_options *o, uint64_t tree, uint64_t inode,
			struct dump_data **ret, size_t *n, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
