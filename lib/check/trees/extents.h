/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_EXTENTS_H
#define BTRKIT_CHECK_EXTENTS_H

#include "lib/check/state.h"

/* Reads the extent tree; fills in the tables, and the used bytes of the groups. */
int check_extents(struct check *c);

#endif
