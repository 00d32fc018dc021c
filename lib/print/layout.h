/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_LAYOUT_H
#define BTRKIT_PRINT_LAYOUT_H

/* Prints devices, chunks and locations. */

#include <btrkit/device.h>

/**
 * Prints the devices of a filesystem.
 *
 * @return as btrkit_devices(), or what @p write returned; -EINVAL: unknown format
 */
int print_devices(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints the chunks of a filesystem. @return as btrkit_chunks(), or as print_devices(). */
int print_chunks(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints the locations of a logical address.
 *
 * @param logical	logical address
 * @return as btrkit_logical_copies(), or as print_devices()
 */
int print_logical_copies(struct btrkit_fs *fs, uint64_t logical, enum btrkit_format format,
				btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
