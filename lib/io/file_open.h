/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_FILE_OPEN_H
#define BTRKIT_IO_FILE_OPEN_H

/* A block device or a file is judged and opened, so that nobody is in the way: see btrkit_io_open(). */

#include <btrkit/io.h>

#include "lib/io/guard.h"
#include "lib/io/spec.h"

struct opened_file {
	int fd;		/* -1: none */
	bool block;	/* a block device, not a file */
	bool part;	/* of a file */
	struct guard guard;
};

/*
 * Opens what @part names, and says in it where in the file that is. @f has no descriptor and no guard before; what it
 * has after a failure is the caller's too. @flags: BTRKIT_IO_*
 */
int file_open(struct io_spec *part, unsigned flags, struct opened_file *f, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
