/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SUBVOLUME_MODIFY_H
#define BTRKIT_SUBVOLUME_MODIFY_H

/**
 * @file
 * Creating, changing and deleting subvolumes and snapshots.
 *
 * These functions are part of a transaction, and modify.h applies to them too: a function that fails has changed
 * nothing, unless it fails with -ENOMEM, -EUCLEAN, -EIO or -ENXIO. Any number of threads may use the transaction.
 * Each of these functions waits until no other thread is working in it, and blocks them meanwhile.
 *
 * If quotas are on, they are marked inconsistent. While simple quotas are on, creating, snapshotting and deleting
 * subvolumes fails with -EOPNOTSUPP.
 */

#include <stdbool.h>

#include <btrkit/modify.h>
#include <btrkit/subvolume.h>

BTRKIT_BEGIN_DECLS

/**
 * Attributes of a new subvolume. Initialise with BTRKIT_NEW_SUBVOLUME_INIT. As in Linux, a default ACL of the directory
 * masks the permissions but is not inherited, nor are inode flags, nor the group of a directory with S_ISGID.
 * btrfs.compression is inherited from the root directory of the parent subvolume.
 *
 * Since: 0.1
 */
struct btrkit_new_subvolume {
	unsigned flags;		/**< must be 0 */
	uint32_t mode;		/**< permissions of its root directory; default: 0755 */
	uint32_t uid, gid;	/**< less than 2^32-1 */
	const uint8_t *uuid;	/**< 16 bytes; NULL: random */
	const struct btrkit_time *time;	/**< time of its creation; NULL: now */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_SUBVOLUME_INIT { 0, 0755, 0, 0, NULL, NULL, { 0 } }

/**
 * Creates an empty subvolume.
 *
 * @param root	objectid of the parent subvolume
 * @param dir	inode number of the directory
 * @param what	attributes; NULL: all defaults
 * @param id	receives its objectid; may be NULL
 * @return 0; -EEXIST; -ENOENT: no such parent or directory; -ENOTDIR; -ENAMETOOLONG; -EINVAL: an invalid name, mode,
 *	   owner, time or flag, or a corrupt default ACL; -EROFS: a read-only parent; -EPERM: an immutable directory;
 *	   -EOVERFLOW: too many names with the same hash; -EOPNOTSUPP; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_subvolume_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
				const struct btrkit_new_subvolume *what, uint64_t *id,
				struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_new_snapshot. Since: 0.1 */
enum btrkit_new_snapshot_flags {
	BTRKIT_NEW_SNAPSHOT_READ_ONLY = 1 << 0
};

/** Options of btrkit_txn_subvolume_snapshot(). Initialise with BTRKIT_NEW_SNAPSHOT_INIT. Since: 0.1 */
struct btrkit_new_snapshot {
	unsigned flags;		/**< enum btrkit_new_snapshot_flags; unknown ones are refused */
	const uint8_t *uuid;	/**< 16 bytes; NULL: random */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_SNAPSHOT_INIT BTRKIT_ZEROS

/**
 * Creates a snapshot of a subvolume, including all changes of the transaction. Nested subvolumes are not included: the
 * snapshot has empty directories in their places.
 *
 * @param source	objectid of the subvolume; it may be read-only
 * @param root	objectid of the parent of the snapshot
 * @param dir	inode number of the directory
 * @param what	options; NULL: all defaults
 * @param id	receives the objectid of the snapshot; may be NULL
 * @return as btrkit_txn_subvolume_create(); -ENOENT: also if there is no @p source
 * Since: 0.1
 */
int btrkit_txn_subvolume_snapshot(struct btrkit_txn *txn, uint64_t source, uint64_t root, uint64_t dir,
				  const char *name, size_t len, const struct btrkit_new_snapshot *what, uint64_t *id,
				  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Deletes a subvolume: first its name, and then, step by step, everything that only it refers to. Between the steps
 * other threads may use the transaction, and it may be committed: see btrkit_txn_set_may_commit().
 *
 * @param id	its objectid
 * @return 0; -ENOENT: no such subvolume, or it is in no directory; -EINVAL: the top level; -EPERM: the default
 *	   subvolume, or in an immutable or append-only directory; -ENOTEMPTY: it contains another subvolume; -EROFS:
 *	   its parent is read-only; -EOPNOTSUPP; -ENOSPC: nothing was changed, or the name is gone and the rest is left
 *	   to btrkit_txn_subvolumes_clean() or to the next mount; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_subvolume_delete(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Completes interrupted deletions of subvolumes, as Linux does in the background.
 *
 * @param count	receives how many were completed, also after a failure; may be NULL
 * @return 0; -EOPNOTSUPP; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_subvolumes_clean(struct btrkit_txn *txn, uint64_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Sets the default subvolume, which is mounted if no other is requested.
 *
 * @param id	its objectid; #BTRKIT_TOP_LEVEL is the top level
 * @return 0; -ENOENT: no such subvolume, or the root tree has no entry for the default; -ENOSPC; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_subvolume_set_default(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes a subvolume read-only or writable. A received subvolume that becomes writable no longer matches what was sent,
 * and cannot be the base of further receives. It must therefore lose its received UUID.
 *
 * @param id	its objectid
 * @param read_only	the new state
 * @param forget_received	allow a received subvolume to become writable, and clear its received UUID
 * @return 0; -ENOENT: no such subvolume; -EPERM: it was received; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_subvolume_set_read_only(struct btrkit_txn *txn, uint64_t id, bool read_only, bool forget_received,
				       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
