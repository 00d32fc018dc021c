/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BACKREF_REFERENCES_H
#define BTRKIT_BACKREF_REFERENCES_H

/*
 * Finds the references to data extents. What is known about tree blocks is kept from one extent to the next, because
 * extents in one leaf share that leaf.
 */

#include <btrkit/reference.h>

#include "lib/tree/cursor.h"

struct known_block;

struct references {
	struct btrkit_fs *fs;
	struct cursor extents;
	struct known_block *known;
	size_t num_known;
	btrkit_lost_fn lost; /* NULL: the first damage ends the search */
	void *lost_ctx;
	uint64_t lost_block; /* a block that cannot be read, of which @lost_key is the first key; 0: none */
	struct btrkit_key lost_key;
	/* References to the last extent: sorted, without duplicates. Those that may be lost have length 0. */
	struct btrkit_reference *at;
	size_t n, size;
};

/* @return 0; <0; references_release() is allowed in either case */
int references_init(struct references *r, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void references_release(struct references *r);

/*
 * Loads the references to the data extent at @bytenr. With @lost set, it goes on behind what cannot be read.
 * @return 0; -ENOENT: no such extent; what @lost returned; <0
 */
int references_load(struct references *r, uint64_t bytenr, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In references_trees.c: */
/*
 * Finds the trees that reach the tree block at @bytenr, in ascending order. They are known until
 * references_forget_trees().
 */
int references_trees_of(struct references *r, uint64_t bytenr, unsigned level, const uint64_t **ret, size_t *n,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
void references_forget_trees(struct references *r);

#endif
