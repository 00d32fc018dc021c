/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_UNKNOWN_H
#define BTRKIT_CHECK_UNKNOWN_H

#include "lib/check/state.h"

/* Reports an item of a type that nothing reads. */
void check_unknown_item(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item);

#endif
