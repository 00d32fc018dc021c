/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_UUIDS_H
#define BTRKIT_CHECK_UUIDS_H

#include "lib/check/state.h"

/* Checks the UUID tree. */
int check_uuids(struct check *c);

#endif
