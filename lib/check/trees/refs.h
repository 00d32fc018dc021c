/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_REFS_H
#define BTRKIT_CHECK_REFS_H

#include "lib/check/state.h"

/* Compares the references recorded in the extent tree with those found in the trees. */
int check_refs(struct check *c);

#endif
