/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_COMPRESSED_H
#define BTRKIT_CHECK_COMPRESSED_H

/* Verifies that compressed data can be decompressed. Unreadable data and bad checksums are reported elsewhere. */

#include "lib/check/state.h"
#include "lib/check/trees/table.h"

/* Checks an inline extent. */
void check_compressed_inline(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe);
/* Checks a data extent, given one of the file extents that refer to it. */
void check_compressed_extent(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe, const struct check_extent *e);

#endif
