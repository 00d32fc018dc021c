/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_FOLDS_H
#define BTRKIT_CHECK_FOLDS_H

/* Findings that have their cause in common, such as those of all blocks on a missing device. */

#include "lib/check/codes.h"
#include "lib/check/state.h"

/*
 * Adds a finding to those of the same code, cause and device, if the caller of the check wants to know them. The lock
 * is held. @return false: it is not about a bad copy of a known cause, or there are too many causes
 */
bool check_folds_take(struct check *c, enum check_code code, const struct check_finding *f);
/* When everything has been read: moves what is not to be folded to the other findings. */
void check_folds_settle(struct check *c);
/* Passes the folds of a code to the caller of the check. @return 0, or what its callback returned */
int check_folds_hand_out(struct check *c, enum check_code code, const struct btrkit_check_code *public);
void check_folds_release(struct check *c);

#endif
