/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_BLOCK_H
#define BTRKIT_DUMP_DUMP_TREE_BLOCK_H

/* Prints a tree block. */

#include "lib/dump/dump.h"
#include "lib/tree/node.h"

/* Prints a node with its pointers, or a leaf with its items. Leaves without selected items are omitted. */
void dump_block(struct dump *d, const struct node *n);

#endif
