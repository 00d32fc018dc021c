/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DEVICE_H
#define BTRKIT_DEVICE_H

/**
 * @file
 * The devices of a filesystem, its chunks, where logical addresses lie on devices, and what of devices is used.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** A device. Since: 0.1 */
struct btrkit_device {
	uint64_t devid;
	uint8_t uuid[16];
	const char *name;	/**< as it was opened; NULL: it is missing. Valid during the call only */
	uint64_t total_bytes;	/**< of the filesystem on it */
	uint64_t bytes_used;	/**< by chunks */
	/** What Linux has counted over time: writes, reads and flushes that failed, damage, wrong generations. */
	uint64_t write_errors, read_errors, flush_errors, corruption_errors, generation_errors;
	/** What was met since the filesystem was opened: reads that failed, and copies that were not accepted. */
	uint64_t failed_reads, rejected_copies;
};

/** Receives a device. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_device_fn)(void *ctx, const struct btrkit_device *device);

/**
 * The devices in the order of their numbers, missing ones too.
 *
 * @return 0; what @p fn returned; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_devices(struct btrkit_fs *fs, btrkit_device_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Where a stripe of a chunk begins on its device. Since: 0.1 */
struct btrkit_stripe {
	uint64_t devid;
	uint64_t physical;
};

/** A chunk, which is a block group in the logical space. Since: 0.1 */
struct btrkit_chunk {
	uint64_t logical, length;
	uint64_t type;		/**< BTRFS_BLOCK_GROUP_*: type and profile */
	uint64_t used;		/**< bytes of extents */
	uint64_t stripe_length;	/**< bytes of a device that each stripe takes */
	bool reachable;		/**< all of it can be read, as far as that depends on missing devices */
	unsigned num_stripes;
	const struct btrkit_stripe *stripes;	/**< valid during the call only */
};

/** Receives a chunk. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_chunk_fn)(void *ctx, const struct btrkit_chunk *chunk);

/** The chunks in the order of their addresses. @return as btrkit_devices(). Since: 0.1 */
int btrkit_chunks(struct btrkit_fs *fs, btrkit_chunk_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What lies at a place of a device. Since: 0.1 */
enum btrkit_copy_role {
	BTRKIT_COPY_DATA,	/**< a copy of the bytes */
	BTRKIT_COPY_P,		/**< parity: the sum of the strips of the row */
	BTRKIT_COPY_Q		/**< the second parity of RAID 6 */
};

/** Where a logical address lies on a device. Since: 0.1 */
struct btrkit_copy {
	unsigned mirror;	/**< copies count from 1, as in Linux; 0 for parity */
	enum btrkit_copy_role role;
	uint64_t devid;
	const char *name;	/**< of the device; NULL: it is missing. Valid during the call only */
	uint64_t physical;
	uint64_t length;	/**< bytes from there on that lie one after the other */
};

/** Receives a place. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_copy_fn)(void *ctx, const struct btrkit_copy *copy);

/**
 * Every place of devices where the byte at a logical address lies: its copies, and then the parity of its row.
 *
 * @param logical	the address
 * @return 0; -ENOENT: no chunk has the address; -EOPNOTSUPP: file data of a filesystem with a raid-stripe-tree; what
 *	   @p fn returned
 * Since: 0.1
 */
int btrkit_logical_copies(struct btrkit_fs *fs, uint64_t logical, btrkit_copy_fn fn, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints what btrkit_devices() tells.
 *
 * @return as that, or what @p write returned; -EINVAL for an unknown format
 * Since: 0.1
 */
int btrkit_devices_print(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints what btrkit_chunks() tells. @return as btrkit_devices_print(). Since: 0.1 */
int btrkit_chunks_print(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Prints what btrkit_logical_copies() tells. @return as that, or as btrkit_devices_print(). Since: 0.1 */
int btrkit_logical_copies_print(struct btrkit_fs *fs, uint64_t logical, enum btrkit_format format,
				btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A range of a device that the filesystem uses. Since: 0.1 */
struct btrkit_used_range {
	uint64_t devid;
	uint64_t physical;	/**< bytes from the start of the device */
	uint64_t length;	/**< bytes; neither touches the range before or after it on the device */
};

/** Receives a range. Returns 0, or a negative errno that ends the iteration. Since: 0.1 */
typedef int (*btrkit_used_range_fn)(void *ctx, const struct btrkit_used_range *range);

/**
 * The ranges of devices that have to be copied for a copy of the filesystem: every copy of what is allocated in the
 * extent tree, data and trees, those in system chunks too; with parity whole rows of which anything is allocated, since
 * parity is made of all of a row; and all superblocks. Whatever lies elsewhere, on a device that the copy is made to,
 * is not read. What is in front of the first superblock, such as a boot loader, is not the filesystem's.
 *
 * Devices come in the order of their numbers, ranges of a device in the order of their addresses; missing devices too,
 * for what the chunks say of them. Memory is needed for the chunks; the part of the extent tree that a chunk is about
 * is read once for each of its stripes on the devices asked for.
 *
 * @param devid	only this device; 0: all
 * @return 0; -EOPNOTSUPP: what is used cannot be told by the extent tree alone, with the name of what stands against
 *	   it: a feature that is unknown or only read (unknown bits of compat_ro too), a log tree, a device replace that
 *	   is not finished; -EBUSY: a transaction is open; -ENOENT: no such device; what @p fn returned; -EUCLEAN: also
 *	   chunks that lie on the same bytes of a device; -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_used_ranges(struct btrkit_fs *fs, uint64_t devid, btrkit_used_range_fn fn, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
