/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_FILE_H
#define BTRKIT_IO_FILE_H

#include <btrkit/io.h>

/* Where a device of btrkit_io_open() lies. @return whether @io is one */
bool io_file_place(const struct btrkit_io *io, int *fd, uint64_t *start);

#endif
