/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_FILLING_H
#define BTRKIT_TESTS_CRASH_FILLING_H

/* A small directory that new filesystems are filled with. */

#include <btrkit/mkfs.h>

/* Made in a temporary folder. Ends the program if it cannot be. */
const struct btrkit_mkfs_source *filling_create(void);
void filling_remove(void);

#endif
