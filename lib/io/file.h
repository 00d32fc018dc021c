/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_FILE_H
#define BTRKIT_IO_FILE_H

#include <sys/stat.h>

#include <btrkit/io.h>

/* All of it, or a negative errno; -ENODATA when the file ends before. */
int io_file_pread(int fd, uint64_t offset, void *buf, size_t len) BTRKIT_MUST_CHECK;
int io_file_pwrite(int fd, uint64_t offset, const void *buf, size_t len) BTRKIT_MUST_CHECK;

/* Whether two devices of btrkit_io_open() show the same bytes, one of them by a loop device, say. */
bool io_file_shared(const struct btrkit_io *a, const struct btrkit_io *b);

/* Whether a file or device, however it is called, is what a device of btrkit_io_open() reads or lies on. */
bool io_file_reads(const struct btrkit_io *io, const struct stat *st);

/* All that a device of btrkit_io_open() lies on. @return whether @io is one */
struct places;
bool io_file_places(const struct btrkit_io *io, struct places *ret);

/* Where a device of btrkit_io_open() lies, also one below an undo file. @return whether @io is one */
bool io_file_place(const struct btrkit_io *io, int *fd, uint64_t *start);

#endif
