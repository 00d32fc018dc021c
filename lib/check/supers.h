/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SUPERS_H
#define BTRKIT_CHECK_SUPERS_H

#include "lib/check/state.h"

/* super_fields.c: what the superblock that is used says of itself. */
void supers_judge_fields(struct check *c);
/* backups.c: the roots of the last commits that it keeps. */
void supers_judge_backups(struct check *c);

#endif
