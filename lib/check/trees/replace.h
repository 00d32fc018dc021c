/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_REPLACE_H
#define BTRKIT_CHECK_REPLACE_H

#include "lib/check/state.h"

/* Checks the item of a device replacement. */
int check_replace(struct check *c);

#endif
