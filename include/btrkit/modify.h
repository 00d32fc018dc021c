/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_H
#define BTRKIT_MODIFY_H

/**
 * @file
 * Changing files, directories and their names in a transaction.
 *
 * Changes become durable when the transaction is committed. Any number of threads may use one transaction at once;
 * btrkit_txn_commit() and btrkit_txn_abort() need exclusive use of it, btrkit_txn_commit_and_continue() does not.
 * Changes are kept in memory first. Functions that read the filesystem see them only after btrkit_txn_flush(), and must
 * not run while other threads change something.
 * btrkit_txn_lookup(), btrkit_txn_xattr_get() and the functions of modify_read.h see all changes at any time.
 *
 * Semantics and errors are those of Linux. A function that fails has changed nothing, except for what its comment says
 * about -ENOSPC, which then applies to -ENOMEM, -EUCLEAN, -EIO and -ENXIO, too: a damaged item, or a sector that cannot
 * be read, fails the calls that need it, and no other. If an -ENOSPC names a device, writing to that device failed for
 * lack of space, and nothing is retried.
 *
 * If one of these four errors, or -EBUSY, leaves a change half done, the transaction has failed. The same happens if
 * they come from btrkit_txn_flush(), or from a commit that btrkit_txn_set_may_commit() allowed. Such a transaction can
 * only be aborted: every other call on it, commits included, returns the same error. btrkit_txn_failure() tells whether
 * that is so.
 *
 * -EBUSY, which any function may return, means that another program has changed a superblock. Superblocks are compared
 * each time before data or tree blocks are written, because nothing keeps Linux from mounting an image file.
 *
 * While simple quotas are on, changing files is not supported: -EOPNOTSUPP is returned by the change itself, by
 * btrkit_txn_flush() or by btrkit_txn_commit().
 */

#include <btrkit/inode.h>
#include <btrkit/transaction.h>

BTRKIT_BEGIN_DECLS

/**
 * Attributes of a new inode. Initialise with BTRKIT_NEW_INODE_INIT. The umask is not applied to the mode. As in Linux,
 * if the directory has a default ACL, that ACL masks the permissions and determines the ACLs of the inode. Inode flags
 * and compression are inherited from the directory too.
 *
 * Since: 0.1
 */
struct btrkit_new_inode {
	unsigned flags;		/**< must be 0 */
	uint32_t mode;		/**< type and permissions, as st_mode; default: a regular file, 0644 */
	uint32_t uid, gid;	/**< less than 2^32-1; a directory with S_ISGID determines @c gid */
	uint64_t rdev;		/**< of device nodes only: makedev(), major below 2^12, minor below 2^20 */
	const char *target;	/**< of symbolic links only, where it is required: shorter than PATH_MAX */
	const struct btrkit_time *time;	/**< for all four times; NULL: now */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_INODE_INIT { 0, 0100644, 0, 0, 0, NULL, NULL, { 0 } }

/**
 * Creates a file, directory, symbolic link, device node, fifo or socket.
 *
 * @param root	objectid of the subvolume
 * @param dir	inode number of the directory
 * @param what	attributes; NULL: an empty regular file
 * @param inode	receives the inode number; may be NULL
 * @return 0; -EEXIST; -ENOENT: no such subvolume or directory, or an empty target; -ENOTDIR; -ENAMETOOLONG; -EINVAL: an
 *	   invalid name, type, owner, device, time or flag, or the directory's default ACL is corrupt; -EROFS: a
 *	   read-only subvolume; -EPERM: an immutable directory; -EOVERFLOW: too many names with the same hash; -ENOSPC;
 *	   -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      const struct btrkit_new_inode *what, uint64_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A name in a directory. Never grows. Since: 0.1 */
struct btrkit_place {
	uint64_t root;		/**< objectid of the directory's subvolume */
	uint64_t dir;		/**< inode number of the directory */
	const char *name;	/**< need not be terminated */
	size_t len;
};

/**
 * Adds a name to a file (a hard link), within its subvolume.
 *
 * @param root	objectid of the file's subvolume
 * @param inode	inode number of the file, as returned by btrkit_txn_lookup()
 * @param to	the new name
 * @return 0; -EEXIST; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EINVAL: an invalid name; -EROFS; -EPERM: a directory, the
 *	   place of a nested subvolume, or an immutable or append-only inode; -EXDEV: @p to is in another subvolume
 *	   (returned only if there is no other error); -EMLINK: the file has 65535 names, or there is no room for
 *	   another one in its directory; -EOVERFLOW: too many names with the same hash; -ENOSPC; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_link(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_place *to,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What btrkit_txn_unlink() removes. Since: 0.1 */
enum btrkit_unlink_what {
	BTRKIT_UNLINK_FILE,	/**< anything but a directory, like unlink(2) */
	BTRKIT_UNLINK_DIR	/**< an empty directory or subvolume, like rmdir(2) */
};

/**
 * Removes a name, and the inode if that was its last name. An empty subvolume is deleted as by
 * btrkit_txn_subvolume_delete().
 *
 * @param what	whether a directory or something else is to be removed
 * @return 0; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EISDIR; -ENOTEMPTY; -EINVAL: an invalid name, or unknown @p what;
 *	   -EPERM: something immutable or append-only, or the default subvolume; -EROFS; -ENOSPC: the name of a large
 *	   file may be gone, and the rest left as an orphan for a later mount or btrkit_txn_orphans_clean(); -ENOMEM,
 *	   -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_unlink(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      enum btrkit_unlink_what what, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Removes the orphans of a subvolume, even if it is read-only: unlinked files that were open when the system crashed,
 * files whose removal was not finished, and unfinished fs-verity data. Linux does this when it first uses the
 * subvolume.
 *
 * @param count	receives the number of orphans removed; may be NULL
 * @return 0; -ENOENT: no such subvolume; -ENOSPC: some may have been removed; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_orphans_clean(struct btrkit_txn *txn, uint64_t root, uint64_t *count,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of btrkit_txn_rename(). Since: 0.1 */
enum btrkit_rename_flags {
	BTRKIT_RENAME_NOREPLACE = 1 << 0,	/**< fail with -EEXIST if the new name exists */
	BTRKIT_RENAME_EXCHANGE = 1 << 1		/**< exchange both names */
};

/**
 * Renames something within a subvolume. Only subvolumes can also move to another subvolume. An existing target is
 * replaced if it is of the same kind and not a directory with entries. A thread that renames a subvolume waits until no
 * other thread is working in the transaction, and blocks them meanwhile.
 *
 * @param from	the old name
 * @param to	the new name
 * @param flags	enum btrkit_rename_flags
 * @return 0; -ENOENT; -EEXIST; -ENOTDIR; -EISDIR; -ENOTEMPTY: the target is a directory with entries, a subvolume, or
 *	   the empty place of one in a snapshot; -EINVAL: a directory into itself, an invalid name, or unknown flags;
 *	   -ENAMETOOLONG; -EXDEV: into another subvolume, and not a subvolume itself; -EPERM; -EMLINK; -EOVERFLOW;
 *	   -EROFS: also a read-only subvolume that would move to another directory; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO,
 *	   -ENXIO
 * Since: 0.1
 */
int btrkit_txn_rename(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		      unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Options of btrkit_txn_write(). Initialise with BTRKIT_WRITE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_write_options {
	unsigned flags;		/**< must be 0 */
	enum btrkit_compression compression;	/**< used where it saves space and the inode allows it */
	int level;		/**< 0: the default; 1 to 9 for zlib, 1 to 15 for zstd; 0 for lzo and none */
	unsigned threads;	/**< for a large write; 0: one per CPU; 1: the caller's only */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_WRITE_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Writes @p len bytes to a file at @p offset and extends it if necessary. Committed data is never overwritten: even in
 * files without copy-on-write, new data gets new extents. If space is short that only a commit can free, the
 * transaction is committed if btrkit_txn_set_may_commit() allows it. With @p len 0 nothing changes, but errors are
 * returned as usual.
 *
 * @param data	the bytes
 * @param len	in bytes
 * @return 0; -ENOENT; -EISDIR; -EINVAL: not a regular file, unknown flags, or an invalid compression level; -EFBIG;
 *	   -EPERM: immutable, append-only, or sealed by fs-verity; -EROFS; -ENOSPC: a first part of the data may have
 *	   been written; -EOPNOTSUPP: a compression that this build lacks; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_write(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		     size_t len, const struct btrkit_write_options *opts, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Changes the size of a file. Added bytes are a hole.
 *
 * @param size	new size in bytes
 * @return as btrkit_txn_write(); -ENOSPC: the file may have its new size, and still occupy space beyond its end
 * Since: 0.1
 */
int btrkit_txn_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Punches a hole into a file, freeing the space of the range. Partial sectors are filled with zeros. The file size
 * stays.
 *
 * @param len	in bytes
 * @return as btrkit_txn_write(); -EINVAL: also if @p len is 0; -ENOSPC: a first part may have become a hole
 * Since: 0.1
 */
int btrkit_txn_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of btrkit_txn_prealloc(). Since: 0.1 */
enum btrkit_prealloc_flags {
	BTRKIT_PREALLOC_KEEP_SIZE = 1 << 0	/**< do not extend the file */
};

/**
 * Preallocates space for a range of a file, which reads as zeros until it is written. Existing data stays.
 *
 * @param len	in bytes
 * @param flags	enum btrkit_prealloc_flags
 * @return as btrkit_txn_write(); -EINVAL: also if @p len is 0, or unknown flags; -ENOSPC: a first part may have been
 *	   preallocated
 * Since: 0.1
 */
int btrkit_txn_prealloc(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
			unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A range to clone, and where to. Since: 0.1 */
struct btrkit_clone {
	uint64_t from_root, from_inode, from_offset;	/**< the source; may be in a read-only subvolume */
	uint64_t to_root, to_inode, to_offset;		/**< the target; may begin beyond the end of the file */
	uint64_t length;				/**< in bytes; 0: up to the end of the source */
	unsigned flags;					/**< must be 0 */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Clones a range of a file (a reflink): the target range shares the extents of the source range. Source and target may
 * be in the same file or in different subvolumes. Holes and preallocated space are cloned too. Both ranges must begin
 * at a multiple of the sector size, and end at one or at the end of the file. Threads that access one of the files
 * meanwhile may see or modify a partial result.
 *
 * @param what	both ranges
 * @return 0; -ENOENT; -EISDIR; -EINVAL: not a regular file, unknown flags, the range is not within the source, is not
 *	   aligned, or overlaps the target, or only one of the files has checksums; -EFBIG; -EPERM: the target is
 *	   immutable, append-only, or sealed by fs-verity; -EROFS; -ENOSPC: a first part may have been cloned; -ENOMEM,
 *	   -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_clone(struct btrkit_txn *txn, const struct btrkit_clone *what,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Which members of struct btrkit_attr are set. Since: 0.1 */
enum btrkit_attr_mask {
	BTRKIT_ATTR_MODE = 1 << 0,
	BTRKIT_ATTR_UID = 1 << 1,
	BTRKIT_ATTR_GID = 1 << 2,
	BTRKIT_ATTR_ATIME = 1 << 3,
	BTRKIT_ATTR_MTIME = 1 << 4,
	BTRKIT_ATTR_CTIME = 1 << 5,
	BTRKIT_ATTR_OTIME = 1 << 6
};

/** Attributes of an inode. Since: 0.1 */
struct btrkit_attr {
	unsigned mask;		/**< enum btrkit_attr_mask: what to change; unknown ones are refused */
	uint32_t mode;		/**< permissions; the type is ignored */
	uint32_t uid, gid;
	struct btrkit_time atime, mtime, ctime, otime;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Changes owner, permissions and times of an inode. @c ctime becomes the current time unless it is given. Changing the
 * owner or group of anything but a directory clears S_ISUID, security.capability, and S_ISGID if the group may execute,
 * as Linux does even for root; a mode that is given too is set afterwards. An access ACL is adjusted to a new mode.
 *
 * @param attr	what to change
 * @return 0, also if nothing is to be changed; -ENOENT; -EINVAL: an invalid time, owner or mask, or the inode's ACL is
 *	   corrupt; -EOPNOTSUPP: the mode of a symbolic link; -EPERM: immutable or append-only; -EROFS; -ENOSPC;
 *	   -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_set_attr(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_attr *attr,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Sets inode flags, like chattr(1). As in Linux, FS_NOCOW_FL of a file that has data does not change; flags that do not
 * apply to the type of the inode are ignored; and each call sets btrfs.compression to "zlib" if FS_COMPR_FL is set
 * afterwards, and removes it otherwise.
 *
 * @param flags	FS_*_FL of linux/fs.h: FS_SYNC_FL, FS_DIRSYNC_FL, FS_IMMUTABLE_FL, FS_APPEND_FL, FS_NODUMP_FL,
 *		FS_NOATIME_FL, FS_NOCOW_FL, FS_COMPR_FL, FS_NOCOMP_FL
 * @param mask	the flags to change; others keep their value
 * @return 0; -ENOENT; -EOPNOTSUPP: another flag; -EINVAL: flags that contradict each other; -EPERM: FS_NOCOW_FL on a
 *	   zoned filesystem; -EROFS; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_set_flags(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint32_t flags, uint32_t mask,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of btrkit_txn_xattr_set(). Since: 0.1 */
enum btrkit_xattr_flags {
	BTRKIT_XATTR_CREATE = 1 << 0,	/**< fail with -EEXIST if it exists */
	BTRKIT_XATTR_REPLACE = 1 << 1	/**< fail with -ENODATA if it does not */
};

/**
 * Sets an extended attribute, like setxattr(2) by root. Symbolic links are not followed. An access ACL changes the
 * mode, and is not stored if the mode expresses all of it. btrfs.compression changes the inode flags, and is removed if
 * the value is empty.
 *
 * @param name	terminated, with its namespace: user., trusted., security., system.posix_acl_access,
 *		system.posix_acl_default or btrfs.compression
 * @param value	@p size bytes; ACLs are in Linux's format
 * @param size	in bytes
 * @param flags	enum btrkit_xattr_flags; ignored for ACLs, as in Linux
 * @return 0; -ENOENT: no such inode; -EEXIST; -ENODATA: no such attribute, and nothing was
 *	   changed; -ERANGE: the name is empty or longer than 255 bytes; -E2BIG: more than 65536 bytes; -ENOSPC: also if
 *	   the attribute does not fit into a leaf; -EOPNOTSUPP: an unknown namespace, or an ACL of a symbolic link or of
 *	   an unknown version; -EPERM: immutable or append-only, or user. on anything but files and directories;
 *	   -EACCES: a default ACL on anything but a directory; -EINVAL: an invalid name, value or flag; -EROFS; -ENOMEM,
 *	   -EUCLEAN, -EIO, -ENXIO
 * Since: 0.1
 */
int btrkit_txn_xattr_set(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, const void *value,
			 size_t size, unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Removes an extended attribute. It is no error if an ACL does not exist.
 *
 * @return as btrkit_txn_xattr_set()
 * Since: 0.1
 */
int btrkit_txn_xattr_remove(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Reads an extended attribute, with all changes of the transaction.
 *
 * @param value	receives the value; may be NULL if @p room is 0
 * @param room	size of @p value in bytes
 * @param size	receives the size of the value in bytes, also with -ERANGE
 * @return 0; -ENOENT: no such inode; -ENODATA: no such attribute; -ERANGE: larger than @p room;
 *	   -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_xattr_get(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, void *value,
			 size_t room, size_t *size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a name refers to. Since: 0.1 */
struct btrkit_found {
	uint64_t root;	/**< of the inode; differs from the directory's where a subvolume begins */
	uint64_t inode;	/**< BTRKIT_EMPTY_SUBVOLUME: the place of a nested subvolume in a snapshot */
	uint8_t type;	/**< DT_* */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Looks up a name in a directory, with all changes of the transaction.
 *
 * @return 0; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EUCLEAN: also if the entry and the inode disagree about the type; -EIO,
 *	   -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_lookup(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      struct btrkit_found *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes all changes so far visible to functions that read the filesystem. They are not durable yet. Other threads may
 * use the transaction meanwhile.
 *
 * @return 0; -EOPNOTSUPP: files were changed while simple quotas are on; -EUCLEAN, -EIO, -ENXIO, -ENOMEM. After a
 *	   failure the transaction can only be aborted
 * Since: 0.1
 */
int btrkit_txn_flush(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
