/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_INODE_H
#define BTRKIT_INODE_H

/**
 * @file
 * Inodes: paths, directory entries, extended attributes and file extents.
 *
 * An inode is identified by the objectid of its subvolume and its inode number.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** A point in time. Since: 0.1 */
struct btrkit_time {
	int64_t sec;	/**< since 1 January 1970 UTC */
	uint32_t nsec;
};

/** An inode item. Since: 0.1 */
struct btrkit_inode {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	uint64_t generation;	/**< in which the inode was created */
	uint64_t transid;	/**< generation of the last change */
	uint64_t sequence;	/**< number of changes, as Linux counts them for NFS */
	uint64_t size;		/**< bytes */
	uint64_t nbytes;	/**< bytes of its file extents, without holes */
	uint64_t rdev;		/**< of a device node: makedev(major, minor); otherwise 0 */
	uint64_t flags;		/**< BTRFS_INODE_*, as on disk */
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint32_t mode;		/**< type and permissions, as st_mode of struct stat */
	struct btrkit_time atime, ctime, mtime, otime;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Finds the inode at a path. A symbolic link before the last name, or before a slash at the end, is followed as if the
 * subvolume was mounted as the root directory of a system, so that none leads out of it; see BTRKIT_OPEN_NO_LINKS. A
 * link that is the last name is itself what is found. Until 0.1 no link was followed.
 *
 * @param root	objectid of the subvolume in which the path starts
 * @param path	terminated; a leading slash is allowed; may lead into other subvolumes, and upwards by two dots, but not
 *		above the root directory of @p root; until 0.1 these were a name
 * @return 0; -ENOENT: no such subvolume or path; -ENOTDIR: a slash follows what is no directory; -ELOOP: more than 40
 *	   links; -ENAMETOOLONG; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_find(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_inode *ret,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Finds the inode at a path as btrkit_inode_find() does, but also follows a symbolic link that is the last name.
 *
 * @return as btrkit_inode_find()
 * Since: 0.2
 */
int btrkit_inode_find_target(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_inode *ret,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Reads an inode. @return as btrkit_inode_find(). Since: 0.1 */
int btrkit_inode_get(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_inode *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Receives a path of @p len bytes, relative to the subvolume, not terminated, and valid only during the call. Returns
 * 0, or a negative errno that stops the iteration.
 *
 * Since: 0.1
 */
typedef int (*btrkit_path_fn)(void *ctx, const char *path, size_t len);

/**
 * Calls a function for each path of an inode within its subvolume, one for each of its names, in key order. An unlinked
 * inode has none; the root directory has one, the empty path. The first name that cannot be read ends the calls.
 *
 * @return 0; -ENOENT: no such subvolume or inode; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_paths(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Receives what is missing from a listing, valid only during the call. Returns 0 to go on behind it, or a negative
 * errno that stops the iteration.
 *
 * Since: 0.2
 */
typedef int (*btrkit_lost_fn)(void *ctx, const struct btrkit_error *what);

/**
 * Calls a function for each path of an inode, as btrkit_inode_paths() does, and goes on behind what cannot be read.
 * Names whose INODE_REF or INODE_EXTREF is lost are found by the entries of directories, and so are those of
 * directories on the way to the root. For that the whole tree of the subvolume is read, once for each kind, if
 * something was lost.
 *
 * @param lost	called for each part that is missing, and for each name without a path. If references were lost, also in
 *		the end, with the number of names that were found by DIR_ITEM or DIR_INDEX, and how many are still
 *		missing by the link count of the inode
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_inode_paths(), without errors that @p lost received; also what @p lost returned; 0 if the inode
 *	   itself is in a lost block, so that it is not known whether it exists
 * Since: 0.2
 */
int btrkit_inode_paths_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn,
			      btrkit_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Objectid of the top-level subvolume, which every filesystem has and which contains all others. Since: 0.1 */
#define BTRKIT_TOP_LEVEL 5

/** Inode number of the root directory of every subvolume. Since: 0.1 */
#define BTRKIT_TOP_INODE 256

/**
 * Inode number of the empty directory that a snapshot shows in place of a nested subvolume, which snapshots do not
 * include. No inode item has this number.
 *
 * Since: 0.1
 */
#define BTRKIT_EMPTY_SUBVOLUME 2

/** A directory entry. Never grows. Since: 0.1 */
struct btrkit_dir_entry {
	const char *name;	/**< not terminated; valid only during the call */
	size_t name_len;
	uint64_t root;		/**< of the inode; differs from the directory's where a subvolume begins */
	uint64_t inode;
	uint64_t index;		/**< entries are numbered in the order of their creation */
	uint8_t type;		/**< DT_*, as d_type of struct dirent */
};

/** Receives an entry. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_dir_entry_fn)(void *ctx, const struct btrkit_dir_entry *entry);

/**
 * Calls a function for each entry of a directory, in the order of readdir(3), which is that of creation. There are no
 * entries for `.` and `..`. At damage it fails, after it has called @p fn for the entries before that.
 *
 * @return 0; -ENOENT: no such subvolume or inode; -ENOTDIR; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_dir_entry_fn fn, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each entry of a directory that comes after another, as readdir(3) after seekdir(3). To resume a
 * listing, pass the index of the last entry that was used: what was created meanwhile comes at the end, what was
 * removed is left out, and nothing comes twice, even if that last entry itself has been removed.
 *
 * At damage it fails, after it has called @p fn for the entries before that. It succeeds again with an @p after behind
 * what was lost; btrkit_inode_entries_around() finds that by itself, and btrkit_iter_entries_around() does from an
 * entry on.
 *
 * @param after	index of an entry; 0: start with the first. An entry that a damaged filesystem has at index 0 is not
 *		found by this function, nor by Linux
 * @return as btrkit_inode_entries()
 * Since: 0.2
 */
int btrkit_inode_entries_after(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after,
			       btrkit_dir_entry_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each entry of a directory that can be read, as btrkit_inode_entries() does, and goes on behind
 * what cannot. Of entries whose DIR_INDEX items are lost, those follow that have a DIR_ITEM, and an INODE_REF,
 * INODE_EXTREF or ROOT_REF with a lost index. If names are missing even then by the size of the directory, the whole
 * tree of the subvolume is read for names of which only the INODE_REF or INODE_EXTREF is left; if the inode item of
 * such a name cannot be read, its type is DT_UNKNOWN. Nothing more is read if nothing was lost. If the inode item of
 * the directory itself is lost, its entries are given nevertheless.
 *
 * @param lost	called for each part that is missing; the message says which indexes it had. If there was one, also in
 *		the end, with the number of entries that were found by their DIR_ITEM, or only by their INODE_REF, and
 *		how many bytes of names are still missing by the size of the directory, which is twice the sum of the
 *		lengths of its names
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_inode_entries(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_inode_entries_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_dir_entry_fn fn,
				btrkit_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Guards a walk through all directories below a directory. Entries of a damaged filesystem may lead to a directory from
 * several places or back up, which could make a walk endless or exponentially long. With this guard each directory is
 * entered at most once: it must have exactly one name, which its inode confirms, and a subvolume is only entered where
 * it is found first. A directory whose INODE_REF is lost is entered by the first entry that leads to it.
 *
 * Since: 0.2
 */
struct btrkit_descent;

/**
 * Begins a walk at directory @p inode of subvolume @p root.
 *
 * @param ret	receives the guard; free it with btrkit_descent_end() before @p fs is closed
 * @return 0; -ENOMEM
 * Since: 0.2
 */
int btrkit_descent_begin(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_descent **ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Frees the guard @p d. NULL is allowed. @return NULL. Since: 0.2 */
struct btrkit_descent *btrkit_descent_end(struct btrkit_descent *d);

/**
 * Finds out whether the directory that an entry leads to may be entered.
 *
 * @param d	the guard of this walk
 * @param root	subvolume of the directory that has the entry
 * @param inode	that directory
 * @param entry	an entry of a directory; not that of #BTRKIT_EMPTY_SUBVOLUME
 * @return 0; 1: it may be entered, but its INODE_REF is lost, and @p err says why; -EUCLEAN: it has another name, or
 *	   was entered before; -EIO, -ENXIO, -ENOMEM
 * Since: 0.2
 */
int btrkit_descent_enter(struct btrkit_descent *d, uint64_t root, uint64_t inode, const struct btrkit_dir_entry *entry,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** An extended attribute, valid only during the call. Since: 0.1 */
struct btrkit_xattr {
	const char *name;	/**< with its namespace, as in user.mime_type; not terminated */
	const void *value;
	size_t name_len, value_len;
};

/** Receives an attribute. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_xattr_fn)(void *ctx, const struct btrkit_xattr *x);

/**
 * Calls a function for each extended attribute of an inode, in the order of their name hashes, which is key order. That
 * includes ACLs (system.posix_acl_access and system.posix_acl_default, in Linux's format) and properties such as
 * btrfs.compression. A name that is stored under a wrong hash is corruption. An inode that does not exist has none.
 *
 * @return 0; -ENOENT: no such subvolume; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_xattrs(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_xattr_fn fn, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Types of file extents. Since: 0.1 */
enum btrkit_file_extent_type {
	BTRKIT_FILE_EXTENT_INLINE,	/**< data in the tree itself */
	BTRKIT_FILE_EXTENT_REGULAR,	/**< data on disk, or a hole if bytenr is 0 */
	BTRKIT_FILE_EXTENT_PREALLOC	/**< preallocated space without data */
};

/** A file extent item: describes a range of a file. Since: 0.1 */
struct btrkit_file_extent {
	uint64_t logical;	/**< offset in the file, bytes */
	uint64_t length;	/**< bytes of the file */
	uint64_t bytenr;	/**< logical address of the whole extent; 0: a hole, or inline */
	uint64_t disk_length;	/**< bytes of the whole extent on disk, or of inline data in the tree */
	uint64_t offset;	/**< of the range within the uncompressed extent */
	uint64_t ram_length;	/**< uncompressed bytes of the whole extent */
	uint64_t generation;
	enum btrkit_file_extent_type type;
	enum btrkit_compression compression;
};

/** Receives an extent. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_file_extent_fn)(void *ctx, const struct btrkit_file_extent *extent);

/**
 * Calls a function for each file extent item of a regular file, in file order. That includes explicit holes, but not
 * the holes for which a filesystem with the no-holes feature stores no item.
 *
 * @return 0; -ENOENT: no such subvolume or inode; -EINVAL: not a regular file; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_extents(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_file_extent_fn fn, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each file extent item of a regular file that can be read, as btrkit_inode_extents() does, and
 * goes on behind what cannot.
 *
 * @param lost	called for each part that is missing; the message says extents of which bytes of the file are in it
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_inode_extents(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_inode_extents_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_file_extent_fn fn,
				btrkit_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
