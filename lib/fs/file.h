/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_FILE_H
#define BTRKIT_FS_FILE_H

#include <btrkit/file.h>

/* The first byte from @offset on that is neither in a hole nor in space without data; else the file's size. */
int file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
