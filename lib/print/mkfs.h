/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_MKFS_H
#define BTRKIT_PRINT_MKFS_H

/* Prints the result of mkfs. */

#include <btrkit/mkfs.h>

/**
 * Prints the result of btrkit_mkfs() as JSON Lines: a header and one object.
 *
 * @param opts	the options that were used; if @c made is set, sizes and UUIDs of the devices are printed too
 * @param result	what was created
 * @param names	names of the devices
 * @param n	number of devices; 0: list none
 * @return 0; -EINVAL: invalid options; -ENOMEM; what @p write returned
 */
int print_mkfs_result(const struct btrkit_mkfs_options *opts, const struct btrkit_mkfs_result *result,
			     const char *const *names, size_t n, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
