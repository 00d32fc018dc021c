/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_FILES_H
#define BTRKIT_TESTS_CRASH_TXN_FILES_H

/* Initial files in a filesystem that mkfs made. */

#include <btrkit/btrkit.h>

#define FILES_FIRST 257ull /* inode number of the first file */

/* Makes a few files with data checksums in the top-level directory. */
int files_make(struct btrkit_fs *fs, struct btrkit_error *err);

#endif
