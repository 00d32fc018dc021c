/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SPAN_FILE_H
#define BTRKIT_CHECK_SPAN_FILE_H

#include "lib/check/files/span.h"
#include "lib/check/state.h"

/* A file extent. */
void span_extent(struct span_reader *r, const struct item *item);
/* Appends the extents of a later part of the inode. */
void span_add_extents(struct check *c, uint64_t tree, struct span_inode *to, uint64_t begin, uint64_t end,
		      uint64_t gap);

#endif
