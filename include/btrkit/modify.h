/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_H
#define BTRKIT_MODIFY_H

/**
 * @file
 * Changing what is in subvolumes: files, directories and their names.
 *
 * All of this is done in a transaction and is durable when that is committed. Any number of threads may work in one
 * transaction at once; btrkit_txn_commit() and btrkit_txn_abort() are for one that is alone with it. What was changed
 * waits in memory: functions that read the filesystem see it after btrkit_txn_flush(), and are called while nobody
 * works in the transaction. btrkit_txn_lookup() and btrkit_txn_xattr_get() see all of it, at any time.
 *
 * The rules are Linux's, and so are the errors. A function that fails has changed nothing, unless it fails with
 * -ENOMEM, -EUCLEAN, -EIO or -ENODATA, or a commit in between did (btrkit_txn_set_may_commit()): the transaction can
 * then only be aborted, and whatever else is done in it, its commit too, fails with the same error. Where an -ENOSPC
 * names a device it is that which has no space for what is written; nothing is tried again then.
 */

#include <btrkit/inode.h>
#include <btrkit/transaction.h>

BTRKIT_BEGIN_DECLS

/**
 * What a new inode has. Initialise with BTRKIT_NEW_INODE_INIT. The mode is the inode's as it is given, whatever the
 * process's umask; but in a directory with a default ACL it only takes permissions from that, and the inode gets ACLs,
 * as in Linux. Flags and compression are inherited too.
 *
 * Since: 0.1
 */
struct btrkit_new_inode {
	unsigned flags;		/**< 0: none are known */
	uint32_t mode;		/**< type and permissions, as in struct stat; the default: a regular file, 0644 */
	uint32_t uid, gid;	/**< below 2^32-1; @c gid is that of the directory where it has S_ISGID */
	uint64_t rdev;		/**< of a device node: makedev(), major below 2^12, minor below 2^20; else not read */
	const char *target;	/**< of a symbolic link, not longer than a path may be; NULL for all else */
	const struct btrkit_time *time;	/**< all four times of the inode; NULL: now */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_NEW_INODE_INIT { 0, 0100644, 0, 0, 0, NULL, NULL, { 0 } }

/**
 * Makes a file, directory, symbolic link, device node, fifo or socket.
 *
 * @param root		objectid of the subvolume
 * @param dir		inode of the directory
 * @param name		@p len bytes, which need not be terminated
 * @param what		NULL: an empty file
 * @param inode		gets its number; may be NULL
 * @return 0; -EEXIST; -ENOENT: no such subvolume or directory, or an empty target; -ENOTDIR; -ENAMETOOLONG; -EINVAL:
 *	   no name, no such type, owner, device or time, or the directory's default ACL is damaged; -EROFS: a read-only
 *	   subvolume;
 *	   -EPERM: an immutable directory; -EOVERFLOW: too many names with the same hash; -ENOSPC; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_create(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      const struct btrkit_new_inode *what, uint64_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A place in a directory. Never grows. Since: 0.1 */
struct btrkit_place {
	uint64_t root;		/**< objectid of the subvolume that the directory is in */
	uint64_t dir;		/**< its inode */
	const char *name;	/**< not necessarily terminated */
	size_t len;
};

/**
 * Gives a file another name, in its subvolume.
 *
 * @param root	objectid of the subvolume that the file is in
 * @param inode	its inode; as btrkit_txn_lookup() gives it, and so also what is none: that has no other names
 * @param to	where the name is to be
 * @return 0; -EEXIST; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EINVAL; -EROFS; -EPERM: a directory, or something immutable or
 *	   append-only; -EXDEV: @p to is in another subvolume, and nothing else is wrong; -EMLINK: 65535 names, or no
 *	   room for another; -EOVERFLOW; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_link(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_place *to,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What btrkit_txn_unlink() removes. Since: 0.1 */
enum btrkit_unlink_what {
	BTRKIT_UNLINK_FILE,	/**< anything but a directory, as unlink(2) */
	BTRKIT_UNLINK_DIR	/**< an empty directory, as rmdir(2): also an empty subvolume, or the place of one */
};

/**
 * Removes a name, and with its last name the inode. An empty subvolume is deleted as by btrkit_txn_subvolume_delete().
 *
 * @param what	whether it is a directory
 * @return 0; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EISDIR; -ENOTEMPTY; -EPERM: something immutable or append-only, or the
 *	   default subvolume; -EROFS; -ENOSPC: the name of a large file may be gone, and the rest be left to a mount;
 *	   -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_unlink(struct btrkit_txn *txn, uint64_t root, uint64_t dir, const char *name, size_t len,
		      enum btrkit_unlink_what what, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Removes what a crash has left in a subvolume, also a read-only one: files that were removed while somebody had them
 * open, or of which not everything could go at once. Linux does this when it first comes to the subvolume.
 *
 * @param count	gets how many there were; may be NULL
 * @return 0; -ENOENT: no such subvolume; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_orphans_clean(struct btrkit_txn *txn, uint64_t root, uint64_t *count,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How btrkit_txn_rename() treats what has the new name. Since: 0.1 */
enum btrkit_rename_flags {
	BTRKIT_RENAME_NOREPLACE = 1 << 0,	/**< nothing may have it: -EEXIST */
	BTRKIT_RENAME_EXCHANGE = 1 << 1		/**< the two change places */
};

/**
 * Gives something another name, in the same subvolume; a subvolume also in another one. What has that name already is
 * replaced, if it is of the same kind and no directory with entries. Who renames a subvolume waits until it is alone in
 * the transaction, and so do the others meanwhile.
 *
 * @param flags	BTRKIT_RENAME_*
 * @param from	what gets another name
 * @param to	that name
 * @return 0; -ENOENT; -EEXIST; -ENOTDIR; -EISDIR; -ENOTEMPTY: also a subvolume that would be replaced, and the place of
 *	   one that a snapshot has not taken along; -EINVAL: a directory into itself, or unknown flags; -EXDEV: from one
 *	   subvolume to another, and no subvolume; -EPERM; -EMLINK; -EOVERFLOW; -EROFS: also a read-only subvolume that
 *	   is to lie in another directory; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_rename(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		      unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How data is written. Initialise with BTRKIT_WRITE_OPTIONS_INIT. Since: 0.1 */
struct btrkit_write_options {
	unsigned flags;		/**< 0: none are known */
	enum btrkit_compression compression;	/**< where that saves space, and the inode allows it */
	int level;		/**< 0: the default; 1 to 9 for zlib, 1 to 15 for zstd; 0 for lzo and without */
	unsigned threads;	/**< that a large write is shared by; 0: as many as processors; 1: the caller's own */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_WRITE_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Writes @p len bytes of a file from @p offset on; it grows if it ends before. Nothing that is committed is
 * overwritten: what is written gets a new place, for files without copy on write too. Where space is short that only a
 * commit makes free, there is one if btrkit_txn_set_may_commit() allows that. No bytes change nothing, and fail where
 * others would.
 *
 * @param opts	NULL: all defaults
 * @param data	@p len bytes
 * @return 0; -ENOENT; -EISDIR; -EINVAL: no regular file, unknown flags, or a level that the compression does not have;
 *	   -EFBIG; -EPERM: immutable, append-only, or with a verity seal; -EROFS; -ENOSPC: the first part of what was to
 *	   be written may have been; -EOPNOTSUPP: a compression that this build does not know; -ENOMEM, -EUCLEAN, -EIO,
 *	   -ENODATA
 * Since: 0.1
 */
int btrkit_txn_write(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, const void *data,
		     size_t len, const struct btrkit_write_options *opts, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Gives a file another size; what comes is a hole.
 *
 * @param size	in bytes
 * @return as btrkit_txn_write(); -ENOSPC: it may have its new size, and keep space behind its end
 * Since: 0.1
 */
int btrkit_txn_truncate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t size,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Gives the space of a range back: it becomes a hole, and zeros where only a part of a sector is in it. The size stays.
 *
 * @return as btrkit_txn_write(); -EINVAL: also no bytes; -ENOSPC: the first part may have become a hole
 * Since: 0.1
 */
int btrkit_txn_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How btrkit_txn_prealloc() works. Since: 0.1 */
enum btrkit_prealloc_flags {
	BTRKIT_PREALLOC_KEEP_SIZE = 1 << 0	/**< the file does not get larger */
};

/**
 * Keeps space for a range of a file, which reads as zeros until it is written. What the file has there stays.
 *
 * @param flags	BTRKIT_PREALLOC_*
 * @return as btrkit_txn_write(); -EINVAL: also no bytes, or unknown flags; -ENOSPC: space may be kept for the first
 *	   part
 * Since: 0.1
 */
int btrkit_txn_prealloc(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
			unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A range that is to share the space of another one. Since: 0.1 */
struct btrkit_clone {
	uint64_t from_root, from_inode, from_offset;	/**< where the data is: also in a read-only subvolume */
	uint64_t to_root, to_inode, to_offset;		/**< what it takes the place of, which may be behind the end */
	uint64_t length;				/**< in bytes; 0: up to the end of the file */
	unsigned flags;					/**< 0: none are known */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Makes a range of a file share the space of a range of a file, which may be the same or in another subvolume; holes
 * and preallocated space come along. Both begin at multiples of the sector size; they end there, too, or with their
 * files. Who changes one of the files meanwhile may see, or make, half of it.
 *
 * @param what	both ranges
 * @return 0; -ENOENT; -EISDIR; -EINVAL: no regular file, a range that is none of the source or does not begin or end as
 *	   said, ranges that overlap, or only one of the files has checksums; -EFBIG; -EPERM: the target is immutable,
 *	   append-only or has a verity seal; -EROFS; -ENOSPC: the first part may have been cloned; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_clone(struct btrkit_txn *txn, const struct btrkit_clone *what,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What btrkit_txn_set_attr() changes. Since: 0.1 */
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
	unsigned mask;		/**< BTRKIT_ATTR_*: which of the following are to be set; unknown ones are refused */
	uint32_t mode;		/**< permissions; the type is not looked at */
	uint32_t uid, gid;
	struct btrkit_time atime, mtime, ctime, otime;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Changes the owner, permissions and times of an inode. @c ctime becomes now if it is not given. A new owner or group
 * takes S_ISUID, security.capability, and S_ISGID where the group may execute, from what is not a directory, as Linux
 * does for root too; a mode that is given besides is set afterwards. An access ACL follows a new mode.
 *
 * @param attr	what is to be set
 * @return 0, also if nothing is to be set; -ENOENT; -EINVAL: a wrong time, owner or mask, or the inode's ACL is
 *	   damaged; -EOPNOTSUPP: the mode of a symbolic link; -EPERM: immutable or append-only; -EROFS; -ENOSPC;
 *	   -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_set_attr(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const struct btrkit_attr *attr,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Sets inode flags as chattr(1) does. Like Linux, this leaves FS_NOCOW_FL of a file with data alone, forgets flags that
 * mean nothing to that type of inode, and whenever flags of something to be compressed are set, makes its
 * btrfs.compression "zlib".
 *
 * @param flags	FS_*_FL of linux/fs.h: FS_SYNC_FL, FS_DIRSYNC_FL, FS_IMMUTABLE_FL, FS_APPEND_FL, FS_NODUMP_FL,
 *		FS_NOATIME_FL, FS_NOCOW_FL, FS_COMPR_FL, FS_NOCOMP_FL
 * @param mask	which of them become as in @p flags; the others stay
 * @return 0; -ENOENT; -EOPNOTSUPP: another flag; -EINVAL: flags that do not go together; -EPERM: FS_NOCOW_FL on zoned
 *	   devices; -EROFS; -ENOSPC; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_set_flags(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint32_t flags, uint32_t mask,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** How btrkit_txn_xattr_set() treats an attribute that is there, or is not. Since: 0.1 */
enum btrkit_xattr_flags {
	BTRKIT_XATTR_CREATE = 1 << 0,	/**< it must not be there: -EEXIST */
	BTRKIT_XATTR_REPLACE = 1 << 1	/**< it must be there: -ENODATA */
};

/**
 * Gives an inode an extended attribute, as setxattr(2) by root. Symbolic links are not followed. An access ACL changes
 * the mode, and is not kept if it says no more than that; btrfs.compression changes the inode's flags, and goes if it
 * is empty.
 *
 * @param name	with its namespace: user., trusted., security., system.posix_acl_access, system.posix_acl_default,
 *		btrfs.compression
 * @param value	@p size bytes; an ACL as Linux encodes it
 * @param flags	BTRKIT_XATTR_*; of no effect for ACLs, as in Linux
 * @return 0; -ENOENT: no such inode; -EEXIST; -ENODATA, with BTRKIT_SYSTEM: it is not there, and nothing was changed;
 *	   -ERANGE: no name, or more than 255 bytes; -E2BIG: more than 65536 bytes; -ENOSPC: also more than fits into a
 *	   leaf; -EOPNOTSUPP: no such namespace, or an ACL of a symbolic link or of an unknown version; -EPERM:
 *	   immutable or append-only, or user. of what is neither file nor directory; -EACCES: a default ACL of what is
 *	   no directory; -EINVAL: a value or name that cannot be; -EROFS; -ENOMEM, -EUCLEAN, -EIO, -ENODATA
 * Since: 0.1
 */
int btrkit_txn_xattr_set(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, const void *value,
			 size_t size, unsigned flags, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Takes an extended attribute away; an ACL need not be there.
 *
 * @return as btrkit_txn_xattr_set()
 * Since: 0.1
 */
int btrkit_txn_xattr_remove(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name,
			    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The value of an extended attribute, with all that was changed in the transaction.
 *
 * @param value	gets the value; may be NULL if @p room is 0
 * @param size	gets its bytes, also if there is no room for them
 * @return 0; -ENOENT: no such inode; -ENODATA, with BTRKIT_SYSTEM: no such attribute; -ERANGE: more than @p room bytes;
 *	   -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_txn_xattr_get(struct btrkit_txn *txn, uint64_t root, uint64_t inode, const char *name, void *value,
			 size_t room, size_t *size, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a name leads to. Since: 0.1 */
struct btrkit_found {
	uint64_t root;	/**< objectid of the subvolume: another than the directory's where one begins */
	uint64_t inode;	/**< BTRKIT_EMPTY_SUBVOLUME: the place of a subvolume that a snapshot has not taken along */
	uint8_t type;	/**< DT_* */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * What has a name in a directory, with all that was changed in the transaction.
 *
 * @return 0; -ENOENT; -ENOTDIR; -ENAMETOOLONG; -EUCLEAN: among others, the name is not of what the inode is; -EIO,
 *	   -ENODATA, -ENOMEM
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
