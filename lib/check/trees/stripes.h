/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_STRIPES_H
#define BTRKIT_CHECK_STRIPES_H

#include "lib/check/state.h"

/* Checks the stripe tree; fills in stripes. */
int check_stripes(struct check *c);
/* Whether the stripe tree maps the whole range, or need not. */
bool check_stripes_have(const struct check *c, uint64_t start, uint64_t length);

#endif
