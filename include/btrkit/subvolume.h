/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SUBVOLUME_H
#define BTRKIT_SUBVOLUME_H

/**
 * @file
 * Finding and listing subvolumes.
 */

#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/**
 * Finds a subvolume by its objectid or its path. A number that is not the objectid of a subvolume is tried as a path.
 *
 * @param name	decimal objectid, or path from the top level, terminated; a leading slash is allowed, and `/` is the top
 *		level
 * @param ret	receives the objectid
 * @return 0; -ENOENT; -EINVAL: the path is not that of a subvolume; -ENAMETOOLONG; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_find(struct btrkit_fs *fs, const char *name, uint64_t *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** The main values of a subvolume's root item. Since: 0.1 */
struct btrkit_subvolume {
	uint64_t id;		/**< objectid of its tree */
	uint64_t generation;	/**< of the last change */
	uint64_t last_snapshot;	/**< generation of the latest snapshot of it */
	uint64_t root_bytenr;	/**< logical address of its root node */
	bool read_only;
	uint8_t uuid[16];
	uint8_t parent_uuid[16];	/**< of the subvolume that it is a snapshot of; otherwise zeros */
	uint8_t received_uuid[16];
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Returns the first subvolume with an objectid greater than @p after. Subvolumes that are being deleted are skipped.
 * The call keeps no state, so it can be repeated after an error.
 *
 * At damage it fails for each @p after before it: at a root item that is not valid, and at a block of the root tree
 * that cannot be read. It succeeds again with an @p after behind that; btrkit_subvolumes_around() finds that by itself,
 * and says which subvolumes are missing.
 *
 * @param after	objectid; 0: start with the top level
 * @return 0; 1: there are no more; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_next(struct btrkit_fs *fs, uint64_t after, struct btrkit_subvolume *ret,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls @p fn once with the path of a subvolume from the top level, through all subvolumes above it. The path has no
 * leading slash; that of the top level is empty. Directories whose INODE_REF is lost are named by the entries that lead
 * to them, for which all of the tree that has them is read.
 *
 * @param id	its objectid
 * @return 0; -ENOENT: no such subvolume, or it is in no directory; what @p fn returned; -EUCLEAN, -EIO, -ENXIO,
 *	   -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolume_path(struct btrkit_fs *fs, uint64_t id, btrkit_path_fn fn, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Reasons for which Linux would refuse to delete a subvolume. Since: 0.1 */
enum btrkit_subvolume_hold {
	BTRKIT_SUBVOLUME_DELETABLE,	/**< none */
	BTRKIT_SUBVOLUME_TOP_LEVEL,	/**< it is the top level */
	BTRKIT_SUBVOLUME_DEFAULT,	/**< it is the default subvolume */
	BTRKIT_SUBVOLUME_IN_READ_ONLY,	/**< its parent is read-only */
	BTRKIT_SUBVOLUME_NOWHERE,	/**< it is in no directory */
	BTRKIT_SUBVOLUME_HOLDS		/**< it contains a subvolume that would remain */
};

/** A subvolume that is to be deleted. Since: 0.1 */
struct btrkit_subvolume_deletion {
	uint64_t id;
	enum btrkit_subvolume_hold hold;
	uint64_t other;		/**< the subvolume that contains it or that it contains; 0: none involved */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Tells which of several subvolumes Linux would delete if all of them were to be deleted, nested ones first. Whether
 * processes use them, and whom they belong to, is not considered.
 *
 * @param subvolumes	sorted by ascending id, without duplicates; receives the reason for each
 * @param n	number of subvolumes
 * @return 0; -EINVAL: not sorted; -ENOENT: no such subvolume, or it is being deleted already; -EUCLEAN, -EIO, -ENXIO,
 *	   -ENOMEM
 * Since: 0.1
 */
int btrkit_subvolumes_deletable(struct btrkit_fs *fs, struct btrkit_subvolume_deletion *subvolumes, size_t n,
				struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
