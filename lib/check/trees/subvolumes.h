/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SUBVOLUMES_H
#define BTRKIT_CHECK_SUBVOLUMES_H

#include "lib/check/state.h"

/* Checks root refs and orphan items of subvolumes; then calls uuids.c. */
int check_subvolumes(struct check *c);

#endif
