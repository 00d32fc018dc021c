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
	uint64_t reserved[8];	/**< 0 */
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
 * @param id	its objectid
 * @return 0; -ENOENT: there is no such subvolume, or no directory has it; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_path(struct btrkit_fs *fs, uint64_t id, btrkit_path_fn fn, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What keeps Linux from deleting a subvolume. Since: 0.1 */
enum btrkit_subvolume_hold {
	BTRKIT_SUBVOLUME_DELETABLE,	/**< nothing */
	BTRKIT_SUBVOLUME_TOP_LEVEL,	/**< it is the top level */
	BTRKIT_SUBVOLUME_DEFAULT,	/**< it is mounted where nothing else is asked for */
	BTRKIT_SUBVOLUME_IN_READ_ONLY,	/**< it lies in a subvolume that is read-only */
	BTRKIT_SUBVOLUME_NOWHERE,	/**< it lies in no directory */
	BTRKIT_SUBVOLUME_HOLDS		/**< another subvolume lies in it that stays */
};

/** A subvolume that is to be deleted. Since: 0.1 */
struct btrkit_subvolume_deletion {
	uint64_t id;
	enum btrkit_subvolume_hold hold;
	uint64_t other;		/**< the one that it lies in or that lies in it; 0: none has to do with it */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Which of some subvolumes Linux would delete if it were asked to delete all of them, those that lie in others first.
 * What programs do with them meanwhile is not known, and neither whose they are.
 *
 * @param subvolumes	@p n of them, ascending by id, each once; what holds each is filled in
 * @return 0; -EINVAL: they are in another order; -ENOENT: no such subvolume, or it is being deleted; -EUCLEAN, -EIO,
 *	   -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolumes_deletable(struct btrkit_fs *fs, struct btrkit_subvolume_deletion *subvolumes, size_t n,
				struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
