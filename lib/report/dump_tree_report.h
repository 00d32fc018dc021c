/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DUMP_TREE_REPORT_H
#define BTRKIT_REPORT_DUMP_TREE_REPORT_H

/* A dump as it is put together, from the first tree to the totals. */

#include "lib/report/dump_tree_select.h"

struct dump_report {
	struct btrkit_fs *fs;
	const struct btrkit_dump_options *o;
	unsigned flags;
	struct dump_run run;
	struct dump_select select;
	bool found;	/* a tree that was asked for by number */
	bool named;	/* trees are asked for, and not all */
	bool told;	/* the trees that name others are shown whole */
	bool lost;	/* some of their items cannot be read */
	bool seen[BACKUP_TREES];	/* of the trees that backup roots name too */
};

static inline enum dump_order report_order(const struct dump_report *r)
{
	return r->flags & BTRKIT_DUMP_DFS ? DUMP_DEPTH_FIRST : DUMP_BREADTH_FIRST;
}

/* The trees that are asked for, and the totals of the filesystem. @return 0 or what failed */
int dump_report_trees(struct dump_report *r, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
