/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_GUARD_H
#define BTRKIT_IO_GUARD_H

/* Who else may be using what is about to be written, or what nobody should write while it is read. */

#include <btrkit/error.h>

#include <sys/stat.h>

#define GUARD_CLAIMS 4

/* Partitions that show the same bytes, kept from others. */
struct guard {
	bool writes;
	int claims[GUARD_CLAIMS];
	size_t n;
};

/*
 * Locks a block device that was opened O_EXCL, or the part of a file that was opened for writing, as long as @fd is
 * open, and sees whether a loop device shows these bytes. A partition of one that nobody uses is claimed.
 * Without @writes nothing is locked or claimed, and a loop device that nobody uses is none of the reader's business.
 * @return 0; -EBUSY: they are in use, the message says by what
 */
int io_guard(int fd, const struct stat *st, uint64_t start, uint64_t len, bool writes,
	     struct guard *guard, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void io_guard_release(struct guard *guard);

#endif
