/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_EXTENT_FIELDS_H
#define BTRKIT_CHECK_EXTENT_FIELDS_H

#include "lib/check/state.h"

/* Checks the fields of a decoded file extent against their possible values. */
void check_extent_fields(struct check *c, const struct node *leaf, const struct item *item,
			 const struct file_extent *fe);

#endif
