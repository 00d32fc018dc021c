/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_NAMES_CHECK_H
#define BTRKIT_CHECK_NAMES_CHECK_H

#include "lib/check/files/names.h"

/* Compares the facts with each other. */
void names_check(struct names *n);

#endif
