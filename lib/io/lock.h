/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_LOCK_H
#define BTRKIT_IO_LOCK_H

/* Locks that keep other programs away from a device or a part of an image file while it is written. */

#include <btrkit/error.h>

#include <sys/stat.h>

/*
 * Locks a block device as long as @fd is open, by the protocol of udev. A lock that a caller of this process holds
 * counts as ours: `flock DEV PROGRAM DEV`, `udevadm lock` and systemd-repart start programs so. @st: of @fd
 * @return 0; -EBUSY: another program holds a lock
 */
int io_lock_block(int fd, const struct stat *st, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Locks only these bytes of a file: others may be used by others. @return 0; -EBUSY: another program holds a lock */
int io_lock_file(int fd, uint64_t start, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
