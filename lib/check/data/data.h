/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_DATA_H
#define BTRKIT_CHECK_DATA_H

#include "lib/check/state.h"

/* Verifies every copy of the data against its checksums, and parity. */
int check_data(struct check *c);

#endif
