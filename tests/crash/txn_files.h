/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_FILES_H
#define BTRKIT_TESTS_CRASH_TXN_FILES_H

/* Something in a filesystem that mkfs made. */

#include <btrkit/btrkit.h>

#define FILES_FIRST 257ull /* the first file's inode */

/* A few files whose data have checksums, in the top level. */
int files_make(struct btrkit_fs *fs, struct btrkit_error *err);

#endif
