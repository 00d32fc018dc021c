/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_TREES_H
#define BTRKIT_DUMP_DUMP_TREE_TREES_H

/* The trees of a dump, from the first to the totals of the filesystem. */

#include "lib/dump/dump_tree_run.h"
#include "lib/dump/dump_tree_select.h"

struct dump_report {
	struct btrkit_fs *fs;
	const struct btrkit_dump_options *o;
	unsigned flags;
	struct dump_run run;
	struct dump_select select;
	bool found;	/* the requested tree was found */
	bool named;	/* only specific trees are requested */
	bool told;	/* the trees with root items are dumped as a whole themselves */
	bool lost;	/* some of their items cannot be read */
	bool seen[BACKUP_TREES];	/* of the trees in backup roots: dumped already */
};

static inline enum dump_order report_order(const struct dump_report *r)
{
	return r->flags & BTRKIT_DUMP_DFS ? DUMP_DEPTH_FIRST : DUMP_BREADTH_FIRST;
}

/* Dumps the requested trees and the totals of the filesystem. @return 0; <0 */
int dump_report_trees(struct dump_report *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
