/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_BASE_H
#define BTRKIT_TESTS_CRASH_TXN_BASE_H

/* What a kind of transactions begins with. */

#include "disks.h"
#include "txn_kinds.h"

/* Among @images, which NULL ends, is the kind's. Ends the program if there is nothing to begin with. */
struct disks base_of(const struct kind *kind, char **images);

/* How many devices it can do without. */
unsigned spare_of(const struct kind *kind);

/* What mkfs makes from now on has UUIDs that nothing else has: for Linux, which knows filesystems by them. */
void base_use_random_uuids(void);

#endif
