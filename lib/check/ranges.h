/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_RANGES_H
#define BTRKIT_CHECK_RANGES_H

/* Lists of struct range, sorted by address, with adjacent ranges merged. */

#include "lib/check/state.h"
#include "lib/space/range.h"

/* Appends a range. All others end at or before its start. */
void check_ranges_add(struct check *c, struct array *list, uint64_t start, uint64_t end);
/* Index of the first range that ends past an address, or list->n. */
size_t check_ranges_behind(const struct array *list, uint64_t address);

#endif
