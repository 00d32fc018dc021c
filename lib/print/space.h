/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_SPACE_H
#define BTRKIT_PRINT_SPACE_H

/* Prints the state of the free space caches. */

#include <btrkit/space.h>

/**
 * Prints the status of both caches: block groups, leftovers, and finally the summary.
 *
 * @param ret	receives the summary; may be NULL
 * @return as btrkit_space_status(), or what @p write returned; -EINVAL: unknown format
 */
int print_space_status(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			      struct btrkit_space_summary *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
