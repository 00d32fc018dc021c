/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_TAR_H
#define BTRKIT_EXTRACT_TAR_H

#include "lib/extract/extract.h"

struct archive_entry;

/* ACLs, the other attributes and the flags of an inode, in the forms of an archive. */
int tar_attributes(struct extract *x, struct archive_entry *e, const struct extract_item *item) BTRKIT_MUST_CHECK;

#endif
