/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SUPERS_H
#define BTRKIT_CHECK_SUPERS_H

#include "lib/check/state.h"

/* Checks the copies of the superblock on every device. */
int check_supers(struct check *c);

#endif
