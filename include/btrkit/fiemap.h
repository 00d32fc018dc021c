/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FIEMAP_H
#define BTRKIT_FIEMAP_H

/**
 * @file
 * The extents of files, each with the flags that Linux's FIEMAP ioctl gives it, sharedness included.
 */

#include <btrkit/reference.h>

BTRKIT_BEGIN_DECLS

/** Flags of an extent: the numbers of linux/fiemap.h's FIEMAP_EXTENT_*. Since: 0.1 */
enum btrkit_extent_flags {
	BTRKIT_EXTENT_LAST = 0x1,
	BTRKIT_EXTENT_ENCODED = 0x8,
	BTRKIT_EXTENT_NOT_ALIGNED = 0x100,
	BTRKIT_EXTENT_INLINE = 0x200,
	BTRKIT_EXTENT_UNWRITTEN = 0x800,
	BTRKIT_EXTENT_SHARED = 0x2000
};

/** A row of the listing: adjacent extents with equal flags are one row, as in the ioctl. Since: 0.1 */
struct btrkit_extent {
	uint64_t logical;	/**< offset in the file, bytes */
	uint64_t physical;	/**< btrfs logical address, as the ioctl reports it; 0 for inline data */
	uint64_t length;	/**< bytes */
	uint32_t flags;		/**< BTRKIT_EXTENT_* */
};

/** The file that rows belong to. Since: 0.1 */
struct btrkit_fiemap_file {
	uint64_t root;		/**< objectid of its subvolume */
	uint64_t inode;
	uint64_t size;		/**< bytes */
	const char *path;	/**< relative to the subvolume, not terminated; empty for an inode without a name */
	size_t path_len;
};

/**
 * Receives the listing: file() before the rows of each file (a listing of all files leaves out those without rows),
 * then extents() with some of its rows, one or more times. Either returns 0, or a negative errno that ends the listing.
 *
 * Since: 0.1
 */
struct btrkit_fiemap_sink {
	int (*file)(void *ctx, const struct btrkit_fiemap_file *file);
	int (*extents)(void *ctx, const struct btrkit_extent *rows, size_t n);
	void *ctx;
	/**
	 * May be NULL. Otherwise every extent is a row of its own, which extents() is called with, and after it this
	 * with all references to that extent, the row's own among them, in their order; with none for data inside the
	 * tree.
	 */
	int (*owners)(void *ctx, const struct btrkit_reference *refs, size_t n);
	void (*reserved[4])(void);	/**< NULL */
};

/**
 * How the work went. Of each item of a file that names a data extent it is asked whether the extent is shared. The
 * number of these items is checked, saved_by_leaf and saved_by_batch together; what is named saved is a look at back
 * references that was not needed, and why.
 *
 * Since: 0.1
 */
struct btrkit_fiemap_stats {
	uint64_t files, extents;	/**< listed; extents counts rows */
	uint64_t leaves;		/**< leaves of file trees gone through, each once in a listing of its file */
	uint64_t extent_leaves;		/**< leaves of the extent tree entered, for data extents and tree blocks */
	uint64_t checked;		/**< data extents whose references were looked at, in one batch for each leaf */
	uint64_t saved_by_leaf;		/**< items in leaves that are known to be shared */
	uint64_t saved_by_batch;	/**< items that name an extent which another of their file and leaf names */
	/**
	 * Tree blocks on the way from the root to a leaf whose references were looked at, to find out whether the leaf
	 * is shared.
	 */
	uint64_t blocks_checked;
	/** The same of which the verdict was known, from the leaf before or from a shared block above them. */
	uint64_t saved_by_path;
	/** Extents that a file names more than once and nobody else does, of which all leaves were looked at. */
	uint64_t spread_checked;
	/** Items of such extents for which that was known from an item before them. */
	uint64_t saved_by_repeat;
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Lists one file.
 *
 * @param root	objectid of the subvolume (5 is the top level)
 * @param path	of the file in it; a leading slash is allowed
 * @param stats	added to; may be NULL
 * @param sink	gets the rows
 * @return 0; -ENOENT: no such subvolume or path; -EINVAL: not a regular file; -EUCLEAN, -EIO, -ENODATA, -ENOMEM; or
 *	   what the sink returned
 * Since: 0.1
 */
int btrkit_fiemap_path(struct btrkit_fs *fs, uint64_t root, const char *path, const struct btrkit_fiemap_sink *sink,
		       struct btrkit_fiemap_stats *stats, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Lists every regular file of every subvolume, ordered by root and inode. Files without rows are left out.
 *
 * @return as btrkit_fiemap_path()
 * Since: 0.1
 */
int btrkit_fiemap_all(struct btrkit_fs *fs, const struct btrkit_fiemap_sink *sink, struct btrkit_fiemap_stats *stats,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Turns a listing into bytes. Since: 0.1 */
struct btrkit_fiemap_printer;

/** Flags of btrkit_fiemap_printer_create(). Since: 0.1 */
enum btrkit_fiemap_printer_flags {
	BTRKIT_FIEMAP_OWNERS = 1 << 0	/**< who refers to each extent, too */
};

/**
 * Makes a printer of listings of @p fs, which must stay open while it is used.
 *
 * @param flags	BTRKIT_FIEMAP_OWNERS or 0
 * @param ret	to be freed by btrkit_fiemap_printer_finish()
 * @return 0, -EINVAL for an unknown format or flag, -ENOMEM
 * Since: 0.1
 */
int btrkit_fiemap_printer_create(struct btrkit_fs *fs, enum btrkit_format format, unsigned flags, btrkit_write_fn write,
				 void *ctx, struct btrkit_fiemap_printer **ret,
				 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The sink to list into.
 *
 * @return what rows are to be given to; it is the printer's
 * Since: 0.1
 */
const struct btrkit_fiemap_sink *btrkit_fiemap_printer_sink(struct btrkit_fiemap_printer *printer);

/**
 * Hands out the rest and frees the printer. NULL is allowed. With @p complete false what is left is handed out too, but
 * not what ends the last file of a text.
 *
 * @return 0, or what the write function returned
 * Since: 0.1
 */
int btrkit_fiemap_printer_finish(struct btrkit_fiemap_printer *printer, bool complete);

BTRKIT_END_DECLS

#endif
