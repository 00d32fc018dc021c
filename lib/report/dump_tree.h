/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_DUMP_TREE_H
#define BTRKIT_REPORT_DUMP_TREE_H

/* The parts of btrkit_dump_tree(): one block, and the blocks of a tree in some order. */

#include <btrkit/dump.h>

#include "lib/base/emit.h"
#include "lib/tree/filesystem.h"
#include "lib/tree/node.h"

struct dump {
	struct btrkit_fs *fs;
	struct emit e;
	unsigned render;	/* RENDER_* */
	bool csum_headers;
	bool depth_first;
	bool begun;
	/* The first item that its validator refused; the dump goes on and shows what it can. */
	int damage;
	struct btrkit_error damage_error;
};

/* The line that comes first, unless it is there: a dump that fails before it finds anything prints nothing. */
void dump_begin(struct dump *d);


/* A node with its pointers, or a leaf with its items. */
void dump_block(struct dump *d, const struct node *n);

enum dump_order {
	DUMP_ALONE,		/* this block only */
	DUMP_ALL,		/* everything below too: breadth first or depth first, as the dump says */
	DUMP_LEAVES,		/* only leaves, in key order */
};

/*
 * The block that @ref names and what lies below it.
 * @return 0, what node_get() returned, or what the sink refused
 */
int dump_blocks(struct dump *d, const struct node_ref *ref, enum dump_order order,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
