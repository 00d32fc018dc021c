/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_GUARD_H
#define BTRKIT_IO_GUARD_H

/* Detects other users of a device that is to be written, or that must not change while it is read. */

#include <btrkit/error.h>

#include <sys/stat.h>

#define GUARD_CLAIMS 4

/* Partitions of loop devices that show the same bytes, held open exclusively. */
struct guard {
	bool writes;
	int claims[GUARD_CLAIMS];
	size_t n;
};

/*
 * Locks a block device that was opened with O_EXCL, or the part of a file that was opened for writing, as long as @fd
 * is open, and looks for loop devices that show these bytes. An unused partition of one is claimed.
 * Without @writes nothing is locked or claimed, and unused loop devices are ignored.
 * @return 0; -EBUSY: in use, the message says by what
 */
int io_guard(int fd, const struct stat *st, uint64_t start, uint64_t len, bool writes,
	     struct guard *guard, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void io_guard_release(struct guard *guard);

#endif
