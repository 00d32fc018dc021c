/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_H
#define BTRKIT_MODIFY_H

/**
 * @file
 * Changing what is in subvolumes: files, directories and their names.
 *
 * All of this is done in a transaction and is durable when that is committed. Any number of threads may work in one
 * transaction at once; btrkit_txn_commit() and btrkit_txn_abort() are for one that is alone with it. What was changed
 * waits in memory: functions that read the filesystem see it after btrkit_txn_flush().
 *
 * The rules are Linux's, and so are the errors. A function that fails has changed nothing, unless it fails with
 * -ENOMEM, -EUCLEAN, -EIO or -ENODATA: the transaction can then only be aborted, and its commit says so.
 */

#include <btrkit/inode.h>
#include <btrkit/transaction.h>

BTRKIT_BEGIN_DECLS

/** What a new inode has. Initialise with BTRKIT_NEW_INODE_INIT. Since: 0.1 */
struct btrkit_new_inode {
	uint32_t mode;		/**< type and permissions, as in struct stat; the default: a regular file, 0644 */
	uint32_t uid, gid;	/**< @c gid is that of the directory where it has S_ISGID */
	uint64_t rdev;		/**< of a device node: makedev() */
	const char *target;	/**< of a symbolic link, not longer than a path may be */
	const struct btrkit_time *time;	/**< all four times of the inode; NULL: now */
};

#define BTRKIT_NEW_INODE_INIT { .mode = 0100644 }

/**
 * Makes a file, directory, symbolic link, device node, fifo or socket.
 *
 * @param root		objectid of the subvolume
 * @param dir		inode of the directory
 * @param name		@p len bytes, which need not be terminated
 * @param what		NULL: an empty file
 * @param inode		gets its number; may be NULL
 * @return 0; -EEXIST; -ENOENT: no such subvolume or directory; -ENOTDIR; -ENAMETOOLONG; -EINVAL: no name, or no such
 *	   type; -EROFS: a read-only subvolume; -EPERM: an immutable directory; -EOVERFLOW: too many names with the same
 *	   hash; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		  const struct btrkit_new_inode *what, uint64_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Gives a file another name in its subvolume.
 *
 * @return 0; -EEXIST; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EINVAL; -EPERM: a directory, or something immutable or
 *	   append-only; -EMLINK: 65535 names, or no room for another; -EOVERFLOW; -EROFS; -ENOSPC; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_link(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t dir, const char *name, size_t len,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What btrkit_unlink() removes. Since: 0.1 */
enum btrkit_unlink_what {
	BTRKIT_UNLINK_FILE,	/**< anything but a directory, as unlink(2) */
	BTRKIT_UNLINK_DIR	/**< an empty directory, as rmdir(2) */
};

/**
 * Removes a name, and with its last name the inode.
 *
 * @return 0; -ENOENT; -ENOTDIR; -EISDIR: also a subvolume; -ENOTEMPTY; -EPERM: something immutable or append-only;
 *	   -EROFS; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_unlink(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		  enum btrkit_unlink_what what, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How btrkit_rename() treats what has the new name. Since: 0.1 */
enum btrkit_rename_flags {
	BTRKIT_RENAME_NOREPLACE = 1 << 0,	/**< nothing may have it: -EEXIST */
	BTRKIT_RENAME_EXCHANGE = 1 << 1		/**< the two change places */
};

/** A place in a directory. Since: 0.1 */
struct btrkit_place {
	uint64_t dir;		/**< inode of the directory */
	const char *name;	/**< not necessarily terminated */
	size_t len;
};

/**
 * Gives something another name, in the same subvolume. What has that name already is replaced, if it is of the same
 * kind and no directory with entries.
 *
 * @param flags	BTRKIT_RENAME_*
 * @return 0; -ENOENT; -EEXIST; -ENOTDIR; -EISDIR; -ENOTEMPTY; -EINVAL: a directory into itself, or unknown flags;
 *	   -EXDEV: a subvolume; -EPERM; -EMLINK; -EOVERFLOW; -EROFS; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_rename(struct btrkit_txn *txn, uint64_t root, const struct btrkit_place *from,
		  const struct btrkit_place *to, unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How data is written. Initialise with BTRKIT_WRITE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_write_options {
	uint8_t compression;	/**< 0 none, 1 zlib, 2 lzo, 3 zstd: where that saves space, and the inode allows it */
	int level;		/**< 0: the default */
};

#define BTRKIT_WRITE_OPTIONS_INIT { 0 }

/**
 * Writes @p len bytes of a file from @p offset on; it grows if it ends before. Nothing that is committed is
 * overwritten: what is written gets a new place, for files without copy on write too.
 *
 * @param opts	NULL: all defaults
 * @return 0; -ENOENT; -EISDIR; -EINVAL: no regular file; -EFBIG; -EPERM: immutable, append-only, or with a verity seal;
 *	   -EROFS; -ENOSPC: the first part of what was to be written may have been; -EOPNOTSUPP: a compression that this
 *	   build does not know; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_write(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data, size_t len,
		 const struct btrkit_write_options *opts, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Gives a file another size; what comes is a hole.
 *
 * @return as btrkit_write()
 * Since: 0.1
 */
int btrkit_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a name leads to. Since: 0.1 */
struct btrkit_found {
	uint64_t root;	/**< objectid of the subvolume: another than the directory's where one begins */
	uint64_t inode;	/**< BTRKIT_EMPTY_SUBVOLUME: the place of a subvolume that a snapshot has not taken along */
	uint8_t type;	/**< DT_* */
};

/**
 * What has a name in a directory, with all that was changed in the transaction.
 *
 * @return 0; -ENOENT; -ENOTDIR; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_lookup(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      struct btrkit_found *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Puts all that was changed so far where functions that read the filesystem see it. It is not durable by that. Others
 * may work in the transaction meanwhile.
 *
 * @return 0; -EUCLEAN, -EIO, -ENODATA, -ENOMEM, after which the transaction can only be aborted
 * Since: 0.1
 */
int btrkit_txn_flush(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
