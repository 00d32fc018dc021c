/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_REFERENCES_H
#define BTRKIT_PRINT_REFERENCES_H

/* Prints references to an address, and the paths of inodes. */

#include <btrkit/reference.h>

/* Beside the flags of btrkit_logical_references(): prints inodes instead of paths. */
#define PRINT_NO_PATHS (1u << 16)

/**
 * Prints the files that contain the byte at a logical address. Text has one line for each path from the top level, with
 * characters that would end the line escaped as in C. A file without a name, or with PRINT_NO_PATHS every
 * file, is printed as `inode N offset N root N`. JSON Lines have an object for each path, and for each reference
 * without one.
 *
 * @param address	logical address
 * @param flags	enum btrkit_logical_flags, and PRINT_NO_PATHS
 * @param lost	called with @p lost_ctx for what cannot be read, behind which it goes on. NULL: it ends there
 * @return as btrkit_logical_references(), or what @p write or @p lost returned; -EINVAL: also an unknown format
 */
int print_logical_references(struct btrkit_fs *fs, uint64_t address, unsigned flags, enum btrkit_format format,
			     btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints the paths of an inode from the top level, in the same formats.
 *
 * @param lost	called with @p lost_ctx for what cannot be read, behind which it goes on. NULL: it ends there
 * @return 0, also if there is no name because something was lost; -EINVAL: unknown format; -ENOENT: no such subvolume
 *	   or inode, or it has no name; what @p write or @p lost returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int print_inode_paths(struct btrkit_fs *fs, uint64_t root, uint64_t inode, enum btrkit_format format,
		      btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
