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
	/* References to the last extent: sorted, without duplicates. */
	struct btrkit_reference *at;
	size_t n, size;
};

/* @return 0; <0; references_release() is allowed in either case */
int references_init(struct references *r, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void references_release(struct references *r);

/* Loads the references to the data extent at @bytenr. @return 0; -ENOENT: no such extent; <0 */
int references_load(struct references *r, uint64_t bytenr, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
