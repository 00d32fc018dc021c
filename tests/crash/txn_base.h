/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_BASE_H
#define BTRKIT_TESTS_CRASH_TXN_BASE_H

/* Initial filesystems for the kinds of transactions. */

#include "disks.h"
#include "txn_kinds.h"

/* Finds the kind's image in @images, a NULL-terminated list, or makes a filesystem. Exits on failure. */
struct disks base_of(const struct kind *kind, char **images);

/* How many devices may be missing. */
unsigned spare_of(const struct kind *kind);

/* Gives new filesystems unique UUIDs from now on: Linux identifies filesystems by them. */
void base_use_random_uuids(void);

#endif
