/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_ZONE_H
#define BTRKIT_IO_ZONE_H

/* Zones of devices on which they have to be written in order. */

#include <btrkit/error.h>
#include <btrkit/io.h>

/* @return 0 the zone that has @offset; 1 the device is not zoned; -EUCLEAN a zone that cannot be; what ioctl() says */
int io_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* What a backend over another tells: what @below does. */
int io_zone_below(struct btrkit_io *below, uint64_t offset, struct btrkit_zone *ret);

/*
 * Asks the kernel for the zone of a block device; addresses count from @start bytes behind the device's.
 * @return 0, 1, a negative errno
 */
int io_zone_of_block(int fd, uint64_t start, uint64_t offset, struct btrkit_zone *ret);

#endif
