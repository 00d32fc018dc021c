/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SUPER_FIELDS_H
#define BTRKIT_CHECK_SUPER_FIELDS_H

#include "lib/check/state.h"

/* Checks the fields of the superblock in use. */
void supers_check_fields(struct check *c);

#endif
