/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FIEMAP_H
#define BTRKIT_FIEMAP_H

/**
 * @file
 * Extents of files, with the flags of Linux's FIEMAP ioctl, including whether they are shared.
 */

#include <btrkit/reference.h>

BTRKIT_BEGIN_DECLS

/** Flags of an extent, numbered as FIEMAP_EXTENT_* in linux/fiemap.h. Since: 0.1 */
enum btrkit_extent_flags {
	BTRKIT_EXTENT_LAST = 0x1,
	BTRKIT_EXTENT_ENCODED = 0x8,
	BTRKIT_EXTENT_NOT_ALIGNED = 0x100,
	BTRKIT_EXTENT_INLINE = 0x200,
	BTRKIT_EXTENT_UNWRITTEN = 0x800,
	BTRKIT_EXTENT_SHARED = 0x2000,
	/**
	 * Not of the ioctl: the extent tree is damaged, and does not tell whether the extent is shared. The flag for
	 * shared extents is not set then. Since: 0.2
	 */
	BTRKIT_EXTENT_MAYBE_SHARED = 0x40000000
};

/** A row of the listing. As in the ioctl, adjacent extents with equal flags are merged into one row. Since: 0.1 */
struct btrkit_extent {
	uint64_t logical;	/**< offset in the file, in bytes */
	uint64_t physical;	/**< logical address, as the ioctl reports it; 0: inline data */
	uint64_t length;	/**< in bytes */
	uint32_t flags;		/**< enum btrkit_extent_flags */
};

/** The file that rows belong to. Since: 0.1 */
struct btrkit_fiemap_file {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	uint64_t size;		/**< in bytes */
	/** Within the subvolume, not terminated; of several the first in key order. Empty: the inode has no name. */
	const char *path;
	size_t path_len;
};

/**
 * Receives the listing. file() is called before the rows of each file; a listing of all files omits those without rows.
 * extents() is called one or more times with rows of that file. All callbacks return 0, or a negative errno that stops
 * the listing.
 *
 * Since: 0.1
 */
struct btrkit_fiemap_sink {
	int (*file)(void *ctx, const struct btrkit_fiemap_file *file);
	int (*extents)(void *ctx, const struct btrkit_extent *rows, size_t n);
	void *ctx;
	/**
	 * May be NULL. If it is set, extents are not merged: extents() is called with each row by itself, and then
	 * owners() with all references to that extent, including the row's own, in order. Inline data has no
	 * references. With problem() set, of what cannot be read those that are known are passed, and problem() is
	 * told once for each file of how many extents references are missing (since 0.2; before, the file ended
	 * there).
	 */
	int (*owners)(void *ctx, const struct btrkit_reference *refs, size_t n);
	/**
	 * May be NULL, and then the first failure ends the listing. Otherwise btrkit_fiemap_all() reports what it
	 * cannot list and continues after it: a file, of which some rows may have been passed already; or with inode 0
	 * what is in a part of the subvolume's tree; or with root 0 subvolumes. The path may be empty. @p what is valid
	 * only during the call. Since 0.2, if leaves of a file's extents are lost, the rows behind them follow, and if
	 * only the extent tree is damaged, all rows; btrkit_fiemap_path() does so, too, and then returns 0. If several
	 * files in a row have such rows for one reason, it is reported once behind them, with root and inode 0.
	 * Directories whose INODE_REF is lost are named by the entries that lead to them; a file whose path is still
	 * not known is listed with an empty one.
	 */
	int (*problem)(void *ctx, const struct btrkit_fiemap_file *file, const struct btrkit_error *what);
	/**
	 * May be NULL. Extents of these bytes of the file may be in tree blocks that cannot be read, which problem() is
	 * told, too. Called in the order of the rows; @p length is not 0. Since: 0.2
	 */
	int (*lost)(void *ctx, const struct btrkit_fiemap_file *file, uint64_t logical, uint64_t length);
	void (*reserved[2])(void);	/**< NULL */
};

/**
 * Effort of a listing. For each file extent item with a data extent, the listing must find out whether the extent is
 * shared. The number of these items is the sum of checked, saved_by_leaf and saved_by_batch, unless something cannot be
 * read. The saved_ members count lookups of back references that were not needed, by reason.
 *
 * Since: 0.1
 */
struct btrkit_fiemap_stats {
	uint64_t files, extents;	/**< listed; extents counts rows */
	uint64_t leaves;		/**< leaves of file trees, once for each file listed in them */
	uint64_t extent_leaves;		/**< leaves of the extent tree read for data extents and tree blocks */
	uint64_t checked;		/**< data extents looked up, in one batch for each leaf, or for several */
	uint64_t saved_by_leaf;		/**< items in leaves that are known to be shared */
	uint64_t saved_by_batch;	/**< items whose extent another item of the file names in the same batch */
	/**
	 * Tree blocks between root and leaf whose references were looked up, to find out whether the leaf is shared.
	 */
	uint64_t blocks_checked;
	/** Tree blocks for which that was known from an earlier look or from a shared block above. */
	uint64_t saved_by_path;
	/** Extents that only one file refers to, more than once, and for which all its leaves had to be examined. */
	uint64_t spread_checked;
	/** Items of such extents for which that was known from an earlier item. */
	uint64_t saved_by_repeat;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Lists the extents of one file.
 *
 * @param path	of the file within the subvolume @p root; a leading slash is allowed; symbolic links are followed, as by
 *		btrkit_inode_find_target()
 * @param sink	receives the rows
 * @param stats	effort, added to what it has; may be NULL
 * @return 0; -ENOENT: no such subvolume or path; -ENOTDIR; -EINVAL: not a regular file; -ENAMETOOLONG; -EBUSY: a
 *	   transaction is open; -EUCLEAN, -EIO, -ENXIO, -ENOMEM; or what the sink returned
 * Since: 0.1
 */
int btrkit_fiemap_path(struct btrkit_fs *fs, uint64_t root, const char *path, const struct btrkit_fiemap_sink *sink,
		       struct btrkit_fiemap_stats *stats, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Lists the extents of all regular files of all subvolumes, ordered by root and inode. Files without rows are omitted.
 *
 * @return as btrkit_fiemap_path()
 * Since: 0.1
 */
int btrkit_fiemap_all(struct btrkit_fs *fs, const struct btrkit_fiemap_sink *sink, struct btrkit_fiemap_stats *stats,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
