/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_ZONE_H
#define BTRKIT_IO_ZONE_H

/* Zoned devices, on which each zone has to be written sequentially. */

#include <btrkit/error.h>
#include <btrkit/io.h>

/*
 * Gets the zone with @offset. @return 0; 1: the device is not zoned; -EUCLEAN: the values are impossible; the error of
 * ioctl()
 */
int io_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* For backends on top of another: what @below reports. */
int io_zone_below(struct btrkit_io *below, uint64_t offset, struct btrkit_zone *ret);

/*
 * Gets a zone of a block device from the kernel; offsets are relative to @start bytes.
 * @return 0, 1, a negative errno
 */
int io_zone_of_block(int fd, uint64_t start, uint64_t offset, struct btrkit_zone *ret);

#endif
