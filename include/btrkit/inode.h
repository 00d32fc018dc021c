/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_INODE_H
#define BTRKIT_INODE_H

/**
 * @file
 * Files and directories: paths to inodes and back, what is in a directory, what a file's data consists of.
 *
 * An inode is named by the objectid of its subvolume and its number.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** A point in time. Since: 0.1 */
struct btrkit_time {
	int64_t sec;	/**< since the epoch */
	uint32_t nsec;
};

/** What an inode says. Since: 0.1 */
struct btrkit_inode {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	uint64_t generation;	/**< in which it was made */
	uint64_t transid;	/**< generation in which it was changed last */
	uint64_t sequence;	/**< how often it was changed, as Linux counts for NFS */
	uint64_t size;		/**< bytes */
	uint64_t nbytes;	/**< bytes that its extents take in the file's address space, holes left out */
	uint64_t rdev;		/**< of a device node, as Linux encodes it: makedev() of major and minor */
	uint64_t flags;		/**< BTRFS_INODE_*, as on disk */
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint32_t mode;		/**< type and permissions, as in struct stat */
	struct btrkit_time atime, ctime, mtime, otime;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * The inode at a path.
 *
 * @param root	objectid of the subvolume that the path starts from
 * @param path	a leading slash is allowed; other subvolumes are entered where it leads there; symbolic links are not
 *		followed
 * @return 0; -ENOENT: no such subvolume or path; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_find(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_inode *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** The inode with a number. @return as btrkit_inode_find(). Since: 0.1 */
int btrkit_inode_get(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_inode *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Receives a path, relative to the subvolume, @p len bytes that are valid during the call only and not terminated.
 * Returns 0, or a negative errno that ends the iteration.
 *
 * Since: 0.1
 */
typedef int (*btrkit_path_fn)(void *ctx, const char *path, size_t len);

/**
 * Every path of an inode within its subvolume: one for each of its names, in the order of the keys. None for an inode
 * that was unlinked; one, the empty path, for the subvolume's root directory.
 *
 * @return 0; -ENOENT: no such subvolume or inode; what @p fn returned; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_paths(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Objectid of the subvolume that every filesystem has, in which the paths of all others begin. Since: 0.1 */
#define BTRKIT_TOP_LEVEL 5

/** Number of the inode that is the root directory of a subvolume, in each of them. Since: 0.1 */
#define BTRKIT_TOP_INODE 256

/**
 * Number of the empty directory that stands, in a snapshot, in the place of a subvolume that was below the original: a
 * snapshot does not take other subvolumes along. There is no inode of that number.
 *
 * Since: 0.1
 */
#define BTRKIT_EMPTY_SUBVOLUME 2

/** An entry of a directory. Since: 0.1 */
struct btrkit_dir_entry {
	const char *name;	/**< valid during the call only, not terminated */
	size_t name_len;
	uint64_t root;		/**< subvolume of the inode: another than the directory's where one begins */
	uint64_t inode;
	uint64_t index;		/**< order in which entries were made */
	uint8_t type;		/**< DT_*, as in struct dirent */
};

/** Receives an entry. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_dir_entry_fn)(void *ctx, const struct btrkit_dir_entry *entry);

/**
 * The entries of a directory, in the order in which they were made, as readdir(3) gives them; not `.` and `..`.
 *
 * @return 0; -ENOENT: no such subvolume or inode; -ENOTDIR; what @p fn returned; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_dir_entry_fn fn, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** An extended attribute; valid during the call only. Since: 0.1 */
struct btrkit_xattr {
	const char *name;	/**< with what stands before its first point, as in user.mime_type; not terminated */
	const void *value;
	size_t name_len, value_len;
};

/** Receives one. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_xattr_fn)(void *ctx, const struct btrkit_xattr *x);

/**
 * The extended attributes of an inode: ACLs in the form of Linux's system.posix_acl_access and
 * system.posix_acl_default, and properties, as btrfs.compression, among them. They come in the order of the hashes of
 * their names, by which Linux finds them: a name under another hash is an error.
 *
 * @return 0; -ENOENT: no such subvolume; what @p fn returned; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_xattrs(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_xattr_fn fn, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Kinds of file extents. Since: 0.1 */
enum btrkit_file_extent_type {
	BTRKIT_FILE_EXTENT_INLINE,	/**< the data lies in the tree */
	BTRKIT_FILE_EXTENT_REGULAR,	/**< data on disk, or a hole if bytenr is 0 */
	BTRKIT_FILE_EXTENT_PREALLOC	/**< space without data */
};

/** A file extent item: what a range of a file is made of. Since: 0.1 */
struct btrkit_file_extent {
	uint64_t logical;	/**< offset in the file, bytes */
	uint64_t length;	/**< bytes of the file */
	uint64_t bytenr;	/**< btrfs logical address of the whole extent; 0: a hole, or inline */
	uint64_t disk_length;	/**< bytes that the whole extent takes, compressed or not; inline: bytes in the tree */
	uint64_t offset;	/**< where in the extent's data, uncompressed, the range begins */
	uint64_t ram_length;	/**< bytes of the whole extent, uncompressed */
	uint64_t generation;
	enum btrkit_file_extent_type type;
	enum btrkit_compression compression;
};

/** Receives an extent. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_file_extent_fn)(void *ctx, const struct btrkit_file_extent *extent);

/**
 * The extents of a regular file in the order of their offsets, one for each item: explicit holes too, but not those
 * for which the no-holes feature keeps no item.
 *
 * @return 0; -ENOENT: no such subvolume or inode; -EINVAL: not a regular file; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_extents(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_file_extent_fn fn, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
