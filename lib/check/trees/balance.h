/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_BALANCE_H
#define BTRKIT_CHECK_BALANCE_H

#include "lib/check/state.h"

/* Checks the item of an interrupted balance. */
int check_balance(struct check *c);

#endif
