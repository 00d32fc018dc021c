/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_FILE_REFS_H
#define BTRKIT_CHECK_FILE_REFS_H

/* Checks the reference of a file extent to its data extent. */

#include "lib/check/state.h"

/* A thread's last positions in the tables; the next lookup is usually close by. */
struct check_hints {
	size_t extent, csum;
};

/*
 * Checks a file extent of a leaf against the data extent it refers to, and subtracts its reference from
 * that extent's sum.
 */
void check_file_extent(struct check *c, const struct node *leaf, bool full_backref, const struct item *item,
		       const struct file_extent *fe, struct check_hints *hints);
/* The reference that a file extent makes. */
struct extent_ref check_file_ref(const struct node *leaf, bool full_backref, const struct item *item,
				 const struct file_extent *fe);

#endif
