/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_HAND_OUT_H
#define BTRKIT_CHECK_HAND_OUT_H

#include "lib/check/state.h"

/*
 * Passes all findings to the caller's callbacks.
 *
 * @return 0, what a callback returned, or -ENOMEM, before any finding is passed
 */
int check_hand_out(struct check *c);

#endif
