/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SUBVOLUME_MODIFY_H
#define BTRKIT_SUBVOLUME_MODIFY_H

/**
 * @file
 * Making, changing and deleting subvolumes and snapshots.
 *
 * What modify.h says of changes holds for these too: they are part of a transaction, and a function that fails has
 * changed nothing, unless it fails with -ENOMEM, -EUCLEAN, -EIO or -ENODATA. Any number of threads may work in the
 * transaction; each of these functions waits until it is alone, and the others wait meanwhile.
 *
 * While quotas are on, what they count is marked as inconsistent. With simple quotas all of this is -EOPNOTSUPP.
 */

#include <stdbool.h>

#include <btrkit/modify.h>
#include <btrkit/subvolume.h>

BTRKIT_BEGIN_DECLS

/**
 * What a new subvolume has. Initialise with BTRKIT_NEW_SUBVOLUME_INIT. As in Linux the directory that it is made in
 * takes permissions from the mode by a default ACL, which is not handed on; neither are flags, nor the group where the
 * directory has S_ISGID. btrfs.compression is that of the subvolume that it lies in.
 *
 * Since: 0.1
 */
struct btrkit_new_subvolume {
	unsigned flags;		/**< 0: none are known */
	uint32_t mode;		/**< permissions of its directory; the default: 0755 */
	uint32_t uid, gid;	/**< below 2^32-1 */
	const uint8_t *uuid;	/**< 16 bytes; NULL: a random one */
	const struct btrkit_time *time;	/**< when it was made; NULL: now */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_SUBVOLUME_INIT { 0, 0755, 0, 0, NULL, NULL, { 0 } }

/**
 * Makes an empty subvolume.
 *
 * @param root	objectid of the subvolume that it is to lie in
 * @param dir	inode of the directory
 * @param name	@p len bytes, which need not be terminated
 * @param what	NULL: all defaults
 * @param id	gets its objectid; may be NULL
 * @return 0; -EEXIST; -ENOENT: no such subvolume or directory; -ENOTDIR; -ENAMETOOLONG; -EINVAL: no name, no such
 *	   permissions, owner or time, or a damaged default ACL; -EROFS: a read-only subvolume; -EPERM: an immutable
 *	   directory; -EOVERFLOW; -EOPNOTSUPP; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_subvolume_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
				const struct btrkit_new_subvolume *what, uint64_t *id,
				struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_new_snapshot. Since: 0.1 */
enum btrkit_new_snapshot_flags {
	BTRKIT_NEW_SNAPSHOT_READ_ONLY = 1 << 0
};

/** How a snapshot is made. Initialise with BTRKIT_NEW_SNAPSHOT_INIT. Since: 0.1 */
struct btrkit_new_snapshot {
	unsigned flags;		/**< BTRKIT_NEW_SNAPSHOT_*; unknown ones are refused */
	const uint8_t *uuid;	/**< 16 bytes; NULL: a random one */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_SNAPSHOT_INIT BTRKIT_ZEROS

/**
 * Makes a snapshot of a subvolume as it is in the transaction now. Subvolumes that lie in it do not come along: in
 * their places the snapshot has empty directories.
 *
 * @param source	objectid of the subvolume, which may be read-only
 * @param root		that of the one that the snapshot is to lie in; this and what follows as for
 *			btrkit_txn_subvolume_create()
 * @param what	NULL: all defaults
 * @param id	gets its objectid; may be NULL
 * @return as btrkit_txn_subvolume_create()
 * Since: 0.1
 */
int btrkit_txn_subvolume_snapshot(struct btrkit_txn *txn, uint64_t source, uint64_t root, uint64_t dir,
				  const char *name, size_t len, const struct btrkit_new_snapshot *what, uint64_t *id,
				  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Deletes a subvolume: its name at once, and then what only it has, in steps between which others may work in the
 * transaction, and which may be committed in between: see btrkit_txn_set_may_commit().
 *
 * @param id	its objectid
 * @return 0; -ENOENT: no such subvolume, or it lies in no directory; -EINVAL: the top level; -EPERM: the default, or
 *	   in an immutable or append-only directory; -ENOTEMPTY: another one lies in it; -EROFS: it lies in one that is
 *	   read-only; -EOPNOTSUPP; -ENOSPC: nothing was changed, or its name is gone and the rest is left for
 *	   btrkit_txn_subvolumes_clean(), or for Linux when it mounts; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_subvolume_delete(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Goes on with subvolumes whose deletion has not come to its end: Linux does that in the background.
 *
 * @param count	gets how many are gone now; may be NULL
 * @return 0; -EOPNOTSUPP; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_subvolumes_clean(struct btrkit_txn *txn, uint64_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Which subvolume is mounted when nothing else is asked for; 5 is the top level.
 *
 * @param id	its objectid
 * @return 0; -ENOENT: no such subvolume, or the filesystem has no entry for a default; -ENOSPC; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_subvolume_set_default(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Whether a subvolume may be written. One that was received and becomes writable is not what was sent any more, and
 * nothing that builds upon that can be received; so it has to forget what it was received from.
 *
 * @param forget_received	a received subvolume may be made writable, and forgets that it was received
 * @param id	its objectid
 * @param read_only	whether it is to be so
 * @return 0; -ENOENT: no such subvolume; -EPERM: it was received; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_subvolume_set_read_only(struct btrkit_txn *txn, uint64_t id, bool read_only, bool forget_received,
				       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
