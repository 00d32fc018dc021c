/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_SUBVOLUMES_H
#define BTRKIT_PRINT_SUBVOLUMES_H

/* Prints subvolumes. */

#include <btrkit/inspect.h>

#include "lib/print/format.h"

/**
 * Prints subvolumes except the top level: as text in the format of `btrfs subvolume list -pcguqR`, as tab-separated
 * values, or as JSON Lines with all members of root items and the ids of the snapshots of each. Any order other than by
 * id keeps all listed subvolumes in memory.
 *
 * @param lost	called with @p lost_ctx for what cannot be read, behind which the listing goes on. NULL: it ends there
 * @return 0; -EINVAL: unknown flag, key or format; -EUCLEAN, -EIO, -ENXIO, -ENOMEM; or what @p write returned
 */
int print_subvolumes(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
		     enum btrkit_format format, btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
