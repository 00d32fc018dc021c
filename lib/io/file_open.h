/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_FILE_OPEN_H
#define BTRKIT_IO_FILE_OPEN_H

/* Checks and opens a block device or file, and makes sure that nobody else uses it: see btrkit_io_open(). */

#include <btrkit/io.h>

#include "lib/io/guard.h"
#include "lib/io/spec.h"

struct opened_file {
	int fd;		/* -1: none */
	bool block;	/* a block device, not a file */
	bool part;	/* only a part of a file or device */
	struct guard guard;
};

/*
 * Opens what @part names, and sets the offset and size in it. *@f initially has neither descriptor nor guard; those
 * that it has after a failure still have to be released by the caller. @flags: BTRKIT_IO_*
 */
int file_open(struct io_spec *part, unsigned flags, struct opened_file *f, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
