/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_REFERENCES_H
#define BTRKIT_REPORT_REFERENCES_H

/*
 * Who refers to data extents. What was found out about tree blocks is kept from one extent to the next, as extents of
 * one leaf have that leaf in common.
 */

#include <btrkit/reference.h>

#include "lib/tree/cursor.h"

struct known_block;

struct references {
	struct btrkit_fs *fs;
	struct cursor extents;
	struct known_block *known;
	/* Those of the last extent: sorted, each once. */
	struct btrkit_reference *at;
	size_t n, size;
};

/* @return 0; <0; references_release() may be called either way */
int references_init(struct references *r, struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void references_release(struct references *r);

/* Fills in those of the data extent that begins at @bytenr. @return 0; -ENOENT: there is none; <0 */
int references_load(struct references *r, uint64_t bytenr, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
