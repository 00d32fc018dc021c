/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_GUARD_H
#define BTRKIT_IO_GUARD_H

/* Who else may be using what is about to be written. */

#include <sys/stat.h>

#include <btrkit/types.h>

/*
 * Locks a block device that was opened O_EXCL, or a file that was opened for writing, as long as @fd is open, and sees
 * whether it backs a loop device.
 * @return 0; -EBUSY: it is in use, the message says by what
 */
int io_guard(int fd, const struct stat *st, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
