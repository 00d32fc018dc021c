/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_RANGES_H
#define BTRKIT_CHECK_RANGES_H

/* Lists of struct range, by address, none touching the next. */

#include "lib/check/state.h"
#include "lib/space/range.h"

/* Puts one behind the others, which end before it or where it begins. */
void check_ranges_add(struct check *c, struct check_list *list, uint64_t start, uint64_t end);
/* The number of the first one that ends behind an address; as many as there are: none does. */
size_t check_ranges_behind(const struct check_list *list, uint64_t address);

#endif
