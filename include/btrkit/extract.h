/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_H
#define BTRKIT_EXTRACT_H

/**
 * @file
 * Copying files, directories and whole subvolumes out of a filesystem, to a directory or into an archive.
 *
 * This copies names, contents with holes, types, modes, owners, access and modification times, extended attributes with
 * ACLs, hard links, symbolic links, device nodes, fifos and sockets. Nested subvolumes become directories; their empty
 * places in a snapshot become empty directories.
 *
 * The filesystem is untrusted. Names that would lead elsewhere are left out and reported as problems, each directory is
 * entered only once, whatever its entries say, and no symbolic link in the target is followed.
 */

#include <btrkit/device.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_extract_options. Since: 0.1 */
enum btrkit_extract_flags {
	/**
	 * To a directory: set owners, and attributes in the trusted. and security. namespaces. This needs root. Without
	 * it, files belong to the caller. Set-user-ID and set-group-ID bits are dropped from files that do not get
	 * their owner or group, for whatever reason. Archives always have all of it.
	 */
	BTRKIT_EXTRACT_OWNERS = 1 << 0,
	/**
	 * To a directory: set inode flags of files and directories, like chattr(1). Immutable and append-only flags
	 * need root. A flag that the target refuses is reported once.
	 */
	BTRKIT_EXTRACT_INODE_FLAGS = 1 << 1
};

/** Options of btrkit_extract() and btrkit_extract_tar(). Initialise with BTRKIT_EXTRACT_OPTIONS_INIT. Since: 0.1 */
struct btrkit_extract_options {
	unsigned flags;		/**< enum btrkit_extract_flags; unknown ones are refused */
	/**
	 * Called for whatever could not be read or created: it is left out, or the rest of it is, and the work
	 * continues. NULL: the first problem stops the work.
	 */
	btrkit_problem_fn problem;
	void *problem_ctx;
	/** Called for what an archive cannot hold and therefore lacks: sockets. May be NULL. */
	btrkit_problem_fn left_out;
	void *left_out_ctx;
	/**
	 * Reports progress as numbers of names and bytes of data. A value other than 0, a negative errno, stops the
	 * work. May be NULL.
	 */
	int (*progress)(void *ctx, uint64_t names, uint64_t bytes);
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_EXTRACT_OPTIONS_INIT BTRKIT_ZEROS

/** What was extracted. Since: 0.1 */
struct btrkit_extract_result {
	uint64_t names;		/**< created */
	uint64_t bytes;		/**< of data, without holes; files with several names count once */
	uint64_t problems;	/**< reported; not what was left out of an archive */
	/** 1: the target failed, and ended the work; the message of the error begins with the path in it. Since: 0.2 */
	uint64_t target_failed;
	uint64_t reserved[3];	/**< 0 */
};

/**
 * Extracts files to a directory.
 *
 * Whatever is at DIRECTORY/PATH already is replaced: a file or symbolic link is removed first, and not written
 * through; a directory is kept and completed. Two dots in PATH lead to the directory above in the filesystem, and drop
 * the name before them from where it is written, which is never above DIRECTORY. Missing parent directories are
 * created. Modes and times of directories are set last. ACLs that the target directory passes on to what is created in
 * it are removed. Preallocated space becomes a hole, and so does what cannot be read of a damaged file: each such range
 * is reported with its first and last byte, and the file has its full size. The
 * property btrfs.compression is set only if the target supports it. Immutable files in the target, and the devices
 * that are read, are not replaced.
 *
 * Memory is needed for each file with further names to come, and for the path to the current file.
 *
 * @param root	objectid of the subvolume in which the paths start
 * @param paths	@p n paths, terminated; a leading slash is allowed
 * @param n	number of paths; 0: the whole subvolume, whose root directory becomes @p directory, with its mode and
 *		times
 * @param directory	path of the target
 * @param result	receives what was extracted, also after a failure; may be NULL
 * @return 0: everything was tried, and the result has the number of problems; -ENOSPC, -EDQUOT, -EROFS or -EIO: of the
 *	   target; -EINVAL: unknown flags; -ENOMEM; what a callback in @p opts returned; another errno if @p directory
 *	   or the subvolume cannot be opened or, without a problem callback, of the first problem
 * Since: 0.1
 */
int btrkit_extract(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, const char *directory,
		   const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Extracts files into a tar archive in the pax format, uncompressed. Owners are numeric, times have nanoseconds, holes
 * are stored as by GNU tar (format 1.0), and attributes and ACLs as by star. Sockets are left out. What cannot be
 * read of a damaged file is zeros, and reported as by btrkit_extract().
 *
 * @param write	receives the archive in order
 * @return as btrkit_extract(), or what @p write returned; -EOPNOTSUPP: a build without libarchive
 * Since: 0.1
 */
int btrkit_extract_tar(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, btrkit_write_fn write,
		       void *ctx, const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
