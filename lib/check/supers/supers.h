/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_SUPERS_H
#define BTRKIT_CHECK_SUPERS_H

#include "lib/check/state.h"

/* super_fields.c: checks the fields of the superblock in use. */
void supers_judge_fields(struct check *c);
/* backups.c: checks its backup roots. */
void supers_judge_backups(struct check *c);

#endif
