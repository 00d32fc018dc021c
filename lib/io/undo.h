/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_H
#define BTRKIT_IO_UNDO_H

/* Writing and applying undo files: see <btrkit/undo.h>. */

#include <btrkit/undo.h>

struct undo_log;

/*
 * Adds the next device to @log. The new device uses the log, and owns @below.
 * @return 0, -EINVAL, -EIO, -ENOMEM: the caller keeps @below
 */
int undo_io_create(struct undo_log *log, struct btrkit_io *below, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The device below an undo device; @io itself if it is none. */
const struct btrkit_io *undo_below(const struct btrkit_io *io);
/*
 * Saves a range that will not be written to the undo file, so that undo detects when it has changed. Without an undo
 * file nothing happens.
 */
int undo_keep(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In undo_run.c: */
/* btrkit_undo() with an open file, which the caller keeps. */
int undo_run(struct btrkit_io *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
	     struct btrkit_undo_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
