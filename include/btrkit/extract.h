/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_H
#define BTRKIT_EXTRACT_H

/**
 * @file
 * Files, directories and whole subvolumes brought out of a filesystem, to a directory or into an archive.
 *
 * What comes out are names, contents with their holes, types, modes, owners, times of access and change, extended
 * attributes with ACLs, hard links, symbolic links, device nodes, fifos and sockets. Subvolumes that lie in what comes
 * out are directories; the places of those that a snapshot did not take along are empty ones.
 *
 * A filesystem may be hostile. Names that would lead elsewhere are left out with a problem, each directory is entered
 * once whatever its entries say, and in the target no symbolic link is followed.
 */

#include <btrkit/listing.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_extract_options. Since: 0.1 */
enum btrkit_extract_flags {
	/**
	 * Into a directory: owners are set, and the attributes whose names begin with trusted. and security.; all of
	 * that is a privilege of root. Without it files are the caller's, and set-user-ID and set-group-ID are dropped
	 * where the owner was somebody else. Archives have all of it always.
	 */
	BTRKIT_EXTRACT_OWNERS = 1 << 0,
	/**
	 * Into a directory: inode flags of files and directories are set, as chattr(1) does. What makes it immutable or
	 * append-only is a privilege of root. A flag that the target refuses is told of once.
	 */
	BTRKIT_EXTRACT_INODE_FLAGS = 1 << 1
};

/** How to do it. Initialise with BTRKIT_EXTRACT_OPTIONS_INIT. Since: 0.1 */
struct btrkit_extract_options {
	unsigned flags;		/**< enum btrkit_extract_flags; unknown ones are refused */
	/**
	 * Told of what could not be read or not be made: it is left out, or its rest is, and the work goes on. NULL:
	 * the first of it ends the work.
	 */
	btrkit_problem_fn problem;
	void *problem_ctx;
	/** Told of what an archive cannot hold and has not: sockets. May be NULL. */
	btrkit_problem_fn left_out;
	void *left_out_ctx;
	/**
	 * So many names, and bytes of data, are done. A value other than 0, a negative errno, ends the work. May be
	 * NULL.
	 */
	int (*progress)(void *ctx, uint64_t names, uint64_t bytes);
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_EXTRACT_OPTIONS_INIT BTRKIT_ZEROS

/** What came of it. Since: 0.1 */
struct btrkit_extract_result {
	uint64_t names;		/**< that were made */
	uint64_t bytes;		/**< of data, without holes; of a file with several names once */
	uint64_t problems;	/**< that were told of; not what was left out */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Brings files to a directory.
 *
 * What is at DIRECTORY/PATH is replaced: a file or a link is removed first, and nothing is written through it; a
 * directory stays and gets what is missing. Directories above PATH are made where there are none. Modes and times of
 * directories come last. Of a file that is damaged what lies before the damage comes out; space without data becomes a
 * hole. The property btrfs.compression is set only where the target has it. What is immutable in the target already is
 * not replaced, nor are the devices that are read.
 *
 * Memory is needed for each file that has further names still to come, and for what lies above a file.
 *
 * @param root	objectid of the subvolume that paths start from
 * @param paths	@p n of them, a leading slash is allowed; none: all of the subvolume, whose root directory is then
 *		@p directory, with its mode and times
 * @param result	may be NULL; filled in after a failure too
 * @return 0: all was tried, and the result says how many problems there were; -ENOSPC, -EDQUOT, -EROFS or -EIO: of the
 *	   target; -EINVAL; -ENOMEM; what a function of the options returned; another errno where @p directory or the
 *	   subvolume cannot be opened, or, without a problem function, of the first problem
 * Since: 0.1
 */
int btrkit_extract(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, const char *directory,
		   const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Writes the same as an archive in the pax form of tar, which is not compressed: owners by number, times with
 * nanoseconds, holes as GNU tar 1.0 has them, attributes and ACLs as star has them. Sockets are left out. A file that
 * is damaged has zeros from the damage on.
 *
 * @param write	is given the archive in its order
 * @return as btrkit_extract(), or what @p write returned; -EOPNOTSUPP: this build has no libarchive
 * Since: 0.1
 */
int btrkit_extract_tar(struct btrkit_fs *fs, uint64_t root, const char *const *paths, size_t n, btrkit_write_fn write,
		       void *ctx, const struct btrkit_extract_options *opts, struct btrkit_extract_result *result,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
