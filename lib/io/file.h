/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_FILE_H
#define BTRKIT_IO_FILE_H

#include <sys/stat.h>

#include <btrkit/io.h>

/* Transfer exactly @len bytes. @return 0; -ENXIO: the file ends before; another negative errno */
int io_file_pread(int fd, uint64_t offset, void *buf, size_t len) BTRKIT_MUST_CHECK;
int io_file_pwrite(int fd, uint64_t offset, const void *buf, size_t len) BTRKIT_MUST_CHECK;

/* Whether two devices from btrkit_io_open() overlap, for example because one is a loop device on the other. */
bool io_file_shared(const struct btrkit_io *a, const struct btrkit_io *b);

/* Whether a file or device, under whatever name, contains what a device from btrkit_io_open() reads. */
bool io_file_reads(const struct btrkit_io *io, const struct stat *st);

/* Finds everything that a device from btrkit_io_open() lies on. @return whether @io is such a device */
struct device_ranges;
bool io_file_places(const struct btrkit_io *io, struct device_ranges *ret);

/*
 * The file descriptor and the offset of a device from btrkit_io_open(), also if it is below an undo file. @return
 * whether @io is such a device
 */
bool io_file_place(const struct btrkit_io *io, int *fd, uint64_t *start);

#endif
