/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_INODE_H
#define BTRKIT_CHECK_INODE_H

#include "lib/check/files/span.h"
#include "lib/check/state.h"

/* Checks the fields of an INODE_ITEM that can be checked on their own. */
void span_inode_item(struct span_reader *r, const struct item *item);
/* Checks an inode that is completely known, and adds its names to the sums of the span. */
void span_check(struct check *c, uint64_t tree, struct span *span, const struct span_inode *inode);
/*
 * Withdraws the finding about an inode's link count: @lacking names of it are missing, as reported, and the count is
 * right. With @entries, a directory lacks entries, and @lacking is the length of their names in both of its indexes.
 */
void span_names_known(struct check *c, uint64_t tree, uint64_t inode, bool entries, uint64_t lacking);

#endif
