/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_DUMP_TREE_LINES_H
#define BTRKIT_DUMP_DUMP_TREE_LINES_H

/* Lines of a dump other than those of blocks, and the beginnings of lines. */

#include "lib/dump/dump.h"
#include "lib/tree/node.h"

/* Prints the first line, unless that was done. A dump that fails before it finds anything prints nothing. */
void dump_begin(struct dump *d);

/* Prints the start of the line before a tree, in JSON the whole line. @key: of the tree's root item, or NULL. */
void dump_heading(struct dump *d, const char *title, const struct btrkit_key *key, const struct tree_root *root);

/* Begins a JSON line of the given kind, with the location of @n if it is not NULL. Nothing is printed in text. */
void dump_line(struct dump *d, const char *kind, const struct node *n);

/* The beginning of a JSON line, prepared once for all lines of a block. */
struct dump_prefix {
	char text[128];
	size_t len;	/* 0: not prepared, the beginning is generated for each line */
};

void dump_prefix_make(struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);
void dump_prefix_line(const struct dump_prefix *p, struct dump *d, const char *kind, const struct node *n);

/* Prints the superblock's backup roots, and its totals for the filesystem. */
void dump_backups(struct dump *d);
void dump_totals(struct dump *d);

#endif
