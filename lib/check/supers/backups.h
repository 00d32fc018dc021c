/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_BACKUPS_H
#define BTRKIT_CHECK_BACKUPS_H

#include "lib/check/state.h"

/* Checks its backup roots. */
void supers_check_backups(struct check *c);

#endif
