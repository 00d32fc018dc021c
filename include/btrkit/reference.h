/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REFERENCE_H
#define BTRKIT_REFERENCE_H

/**
 * @file
 * Finding the files that use a logical address or a data extent.
 */

#include <btrkit/device.h>
#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/** A file range that refers to a data extent, or to a part of it. Since: 0.1 */
struct btrkit_reference {
	uint64_t root;		/**< objectid of the subvolume, or of another tree that has files */
	uint64_t inode;
	uint64_t offset;	/**< of the range in the file, in bytes */
	uint64_t length;	/**< bytes of the file; 0: not known, see btrkit_logical_references_around() */
	uint64_t extent_offset; /**< of the range within the uncompressed extent, in bytes */
	bool compressed;
};

/** Receives a reference. Returns 0, or a negative errno that stops the work. Since: 0.1 */
typedef int (*btrkit_reference_fn)(void *ctx, const struct btrkit_reference *ref);

/**
 * Calls a function for each reference to a data extent, ordered by root, inode and offset. A file that a snapshot
 * shares with its source is reported for both.
 *
 * @param bytenr	logical address of the extent
 * @return 0; -ENOENT: no data extent begins there; -EBUSY: a transaction is open; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_extent_references(struct btrkit_fs *fs, uint64_t bytenr, btrkit_reference_fn fn, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** The allocation at a logical address. Since: 0.1 */
struct btrkit_allocation {
	uint64_t bytenr;	/**< logical address of its first byte */
	uint64_t length;	/**< bytes */
	uint64_t generation;	/**< in which it was allocated */
	bool data;		/**< a data extent; otherwise a tree block */
	uint8_t level;		/**< of a tree block */
	uint64_t reserved[2];	/**< 0 */
};

/**
 * Finds the data extent or tree block that contains a logical address.
 *
 * @param address	logical address
 * @return 0; -ENOENT: nothing is allocated there; -EBUSY: a transaction is open; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_logical_find(struct btrkit_fs *fs, uint64_t address, struct btrkit_allocation *ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of btrkit_logical_references(). Since: 0.1 */
enum btrkit_logical_flags {
	/** Report all references to the extent, not only those to the byte at the address. */
	BTRKIT_LOGICAL_WHOLE_EXTENT = 1 << 0
};

/**
 * Calls a function for each file that contains the byte at a logical address, as Linux's LOGICAL_INO ioctl finds them.
 * @c offset is the position of the byte in the file. For a compressed extent, whose bytes have no position in the file,
 * and with #BTRKIT_LOGICAL_WHOLE_EXTENT, all references are reported, with the offsets where they begin. The first
 * damage ends the calls.
 *
 * @param address	logical address
 * @param flags	enum btrkit_logical_flags
 * @return 0; -ENOENT: nothing is allocated there; -EINVAL: it is a tree block, or unknown flags; -EBUSY: a transaction
 *	   is open; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_logical_references(struct btrkit_fs *fs, uint64_t address, unsigned flags, btrkit_reference_fn fn, void *ctx,
			      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each file that contains the byte at a logical address, as btrkit_logical_references() does, and
 * goes on behind what cannot be read. The extent tree says which inodes refer to an extent, so that this is known of a
 * file whose extents are in a lost leaf. Such a reference has a @c length and @c extent_offset of 0: the file may
 * contain the byte or other bytes of the extent, or both. If it contains the byte, and the extent is not compressed,
 * this is at @c offset; with #BTRKIT_LOGICAL_WHOLE_EXTENT that is where the first byte of the extent would be, modulo
 * 2^64.
 *
 * @param lost	called for each part that is missing. The message says of which inode it is not known which of its bytes
 *		are in the extent, or which leaf has further references, or how many references the extent tree has lost
 * @param ctx	passed to @p fn and @p lost
 * @return as btrkit_logical_references(), without errors that @p lost received; also what @p lost returned
 * Since: 0.2
 */
int btrkit_logical_references_around(struct btrkit_fs *fs, uint64_t address, unsigned flags, btrkit_reference_fn fn,
				     btrkit_lost_fn lost, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
