/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_FILLING_H
#define BTRKIT_TESTS_CRASH_FILLING_H

/* A small source directory for filling new filesystems. */

#include <btrkit/mkfs.h>

/* Creates it in a temporary directory. Exits on failure. */
const struct btrkit_mkfs_source *filling_create(void);
void filling_remove(void);

#endif
