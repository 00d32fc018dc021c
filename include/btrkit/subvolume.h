/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SUBVOLUME_H
#define BTRKIT_SUBVOLUME_H

/**
 * @file
 * Subvolumes.
 */

#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/**
 * The objectid of a subvolume, given its number, or its path from the top level (a leading slash is allowed; `/` is
 * the top level, 5). A number that names no subvolume is tried as a path.
 *
 * @return 0; -ENOENT; -EINVAL: the path is no subvolume; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_find(struct btrkit_fs *fs, const char *name, uint64_t *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a subvolume's root item says. Since: 0.1 */
struct btrkit_subvolume {
	uint64_t id;		/**< objectid of its tree */
	uint64_t generation;	/**< of the last change */
	uint64_t last_snapshot;	/**< generation in which a snapshot of it was last made */
	uint64_t root_bytenr;	/**< logical address of its root block */
	bool read_only;
	uint8_t uuid[16];
	uint8_t parent_uuid[16];	/**< of the subvolume it is a snapshot of; zero otherwise */
	uint8_t received_uuid[16];
};

/**
 * The first subvolume with a number above @p after (0: the first of all, the top level). Subvolumes that are being
 * deleted are passed over.
 *
 * @return 0; 1: there is none; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_next(struct btrkit_fs *fs, uint64_t after, struct btrkit_subvolume *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Where a subvolume lies: calls @p fn once with its path from the top level, the names of the subvolumes above it
 * included, without a slash at the start; the empty path for the top level.
 *
 * @return 0; -ENOENT: there is no such subvolume, or no directory has it; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_path(struct btrkit_fs *fs, uint64_t id, btrkit_path_fn fn, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
