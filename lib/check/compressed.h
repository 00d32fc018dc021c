/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_COMPRESSED_H
#define BTRKIT_CHECK_COMPRESSED_H

/* Compressed data, decompressed. Nothing is told of data that cannot be read, or does not have its checksum. */

#include "lib/check/state.h"

/* What is in a leaf. */
void check_compressed_inline(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe);
/* An extent, by one of the file extents that refer to it. */
void check_compressed_extent(struct check *c, const struct node *leaf, const struct item *item,
			     const struct file_extent *fe, const struct check_extent *e);

#endif
