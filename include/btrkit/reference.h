/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REFERENCE_H
#define BTRKIT_REFERENCE_H

/**
 * @file
 * From an address to the files: which parts of which files a data extent is, in every subvolume.
 */

#include <btrkit/device.h>
#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/** A range of a file that a data extent, or a part of it, is the contents of. Since: 0.1 */
struct btrkit_reference {
	uint64_t root;		/**< objectid of the subvolume, or of another tree that has files */
	uint64_t inode;
	uint64_t offset;	/**< in the file, bytes, where the range begins */
	uint64_t length;	/**< bytes of the file */
	uint64_t extent_offset; /**< in the extent's data, uncompressed, where the range begins */
	bool compressed;
};

/** Receives a reference. Returns 0, or a negative errno that ends the work. Since: 0.1 */
typedef int (*btrkit_reference_fn)(void *ctx, const struct btrkit_reference *ref);

/**
 * All references to a data extent, ordered by root, inode and offset. A file that a snapshot shares with its original
 * is told for both.
 *
 * @param bytenr	logical address where the extent begins
 * @return 0; -ENOENT: no data extent begins there; what @p fn returned; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_extent_references(struct btrkit_fs *fs, uint64_t bytenr, btrkit_reference_fn fn, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What is at a logical address. Since: 0.1 */
struct btrkit_allocation {
	uint64_t bytenr;	/**< logical address where it begins */
	uint64_t length;	/**< bytes */
	uint64_t generation;	/**< in which it was allocated */
	bool data;		/**< a data extent; otherwise a tree block */
	uint8_t level;		/**< of a tree block */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * The data extent or tree block that has the byte at an address.
 *
 * @param address	logical
 * @return 0; -ENOENT: nothing is allocated there; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_logical_find(struct btrkit_fs *fs, uint64_t address, struct btrkit_allocation *ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of btrkit_logical_references() and btrkit_logical_references_print(). Since: 0.1 */
enum btrkit_logical_flags {
	/** Tell all that refer to the extent, not only those that refer to the byte at the address. */
	BTRKIT_LOGICAL_WHOLE_EXTENT = 1 << 0,
	BTRKIT_LOGICAL_NO_PATHS = 1 << 1	/**< print the inodes and not their paths */
};

/**
 * The files that have the byte at a logical address, as Linux's LOGICAL_INO finds them: of each, @c offset is where in
 * the file that byte is. Of a compressed extent, whose bytes are those of no place in particular, all references are
 * told, with the offsets where they begin; so is every one with #BTRKIT_LOGICAL_WHOLE_EXTENT.
 *
 * @param flags	BTRKIT_LOGICAL_*
 * @param address	logical
 * @return 0; -ENOENT: nothing is allocated there; -EINVAL: it is a tree block, or unknown flags; what @p fn returned;
 *	   -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_logical_references(struct btrkit_fs *fs, uint64_t address, unsigned flags, btrkit_reference_fn fn, void *ctx,
			      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The same, printed. As text a line for each path from the top level, in which what would end a line is escaped as in
 * C; a file without a name, or with #BTRKIT_LOGICAL_NO_PATHS every one, as `inode N offset N root N`. As JSON Lines an
 * object for each path, and for each reference without one.
 *
 * @param flags	BTRKIT_LOGICAL_*
 * @return as btrkit_logical_references(), or what @p write returned
 * Since: 0.1
 */
int btrkit_logical_references_print(struct btrkit_fs *fs, uint64_t address, unsigned flags, enum btrkit_format format,
				    btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The paths of an inode from the top level, printed in the same way.
 *
 * @param root	objectid of its subvolume
 * @return 0; -ENOENT: no such subvolume or inode, or it has no name; what @p write returned; -EUCLEAN, -EIO, -ENODATA,
 *	   -ENOMEM
 * Since: 0.1
 */
int btrkit_inode_paths_print(struct btrkit_fs *fs, uint64_t root, uint64_t inode, enum btrkit_format format,
			     btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
