/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_IO_UNDO_H
#define BTRKIT_IO_UNDO_H

/* The two ends of an undo file, over files of any kind: see <btrkit/undo.h>. */

#include <btrkit/undo.h>

struct undo_log;

/*
 * The next device of @log. Uses the log, and owns @below from then on.
 * @return 0, -EINVAL, -EIO, -ENOMEM: @below stays the caller's
 */
int undo_io_create(struct undo_log *log, struct btrkit_io *below, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What lies below such a device; @io itself if it is none. */
const struct btrkit_io *undo_below(const struct btrkit_io *io);
/*
 * Has the file keep what lies in a range that nobody is about to write to, so that undo sees when that has changed. Of
 * a device without an undo file nothing is kept.
 */
int undo_keep(struct btrkit_io *io, uint64_t offset, uint64_t len, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* btrkit_undo() with a file that is open, which stays the caller's. */
int undo_run(struct btrkit_io *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
	     struct btrkit_undo_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
