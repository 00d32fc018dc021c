/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DEVICE_H
#define BTRKIT_DEVICE_H

/**
 * @file
 * Devices and chunks of a filesystem, and the mapping from logical addresses to devices.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** A device of a filesystem. Since: 0.1 */
struct btrkit_device {
	uint64_t devid;
	uint8_t uuid[16];
	const char *name;	/**< as it was opened; NULL: missing. Valid only during the call */
	uint64_t total_bytes;	/**< size that the filesystem uses */
	uint64_t bytes_used;	/**< allocated to chunks */
	/** Persistent statistics of Linux: failed writes, reads and flushes, corruption, generation mismatches. */
	uint64_t write_errors, read_errors, flush_errors, corruption_errors, generation_errors;
	/** Failed reads, and rejected copies, since the filesystem was opened. */
	uint64_t failed_reads, rejected_copies;
};

/** Receives a device. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_device_fn)(void *ctx, const struct btrkit_device *device);

/**
 * Calls a function for each device, ordered by devid, missing devices included.
 *
 * @return 0; what @p fn returned; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_devices(struct btrkit_fs *fs, btrkit_device_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Where a stripe of a chunk begins on its device. Since: 0.1 */
struct btrkit_stripe {
	uint64_t devid;
	uint64_t physical;
};

/** A chunk, and the block group at the same logical addresses. Since: 0.1 */
struct btrkit_chunk {
	uint64_t logical, length;
	uint64_t type;		/**< BTRFS_BLOCK_GROUP_*: type and profile */
	uint64_t used;		/**< bytes allocated in the block group */
	uint64_t stripe_length;	/**< bytes of each stripe on its device */
	bool reachable;		/**< no missing device prevents reading any of it */
	unsigned num_stripes;
	const struct btrkit_stripe *stripes;	/**< valid only during the call */
};

/** Receives a chunk. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_chunk_fn)(void *ctx, const struct btrkit_chunk *chunk);

/**
 * Calls a function for each chunk, ordered by logical address.
 *
 * @return as btrkit_devices(); -EBUSY: a transaction is open
 * Since: 0.1
 */
int btrkit_chunks(struct btrkit_fs *fs, btrkit_chunk_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** What a location on a device holds. Since: 0.1 */
enum btrkit_copy_role {
	BTRKIT_COPY_DATA,	/**< a copy of the data */
	BTRKIT_COPY_P,		/**< parity: the XOR of the data strips of the full stripe */
	BTRKIT_COPY_Q		/**< the second parity of RAID6 */
};

/** A location on a device that holds a logical address. Since: 0.1 */
struct btrkit_copy {
	unsigned mirror;	/**< number of the copy, from 1 as in Linux; 0: parity */
	enum btrkit_copy_role role;
	uint64_t devid;
	const char *name;	/**< of the device; NULL: missing. Valid only during the call */
	uint64_t physical;
	uint64_t length;	/**< bytes that are contiguous from there */
};

/** Receives a location. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_copy_fn)(void *ctx, const struct btrkit_copy *copy);

/**
 * Calls a function for each location of the byte at a logical address: first its copies, then the parity of its full
 * stripe.
 *
 * @param logical	logical address
 * @return 0; -ENOENT: no chunk contains the address; -EOPNOTSUPP: file data of a filesystem with a raid-stripe-tree;
 *	   what @p fn returned
 * Since: 0.1
 */
int btrkit_logical_copies(struct btrkit_fs *fs, uint64_t logical, btrkit_copy_fn fn, void *ctx,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** A range of a device that the filesystem uses. Since: 0.1 */
struct btrkit_used_range {
	uint64_t devid;
	uint64_t physical;	/**< from the start of the device, in bytes */
	uint64_t length;	/**< in bytes; adjacent ranges are merged */
};

/** Receives a range. Returns 0, or a negative errno that stops the iteration. Since: 0.1 */
typedef int (*btrkit_used_range_fn)(void *ctx, const struct btrkit_used_range *range);

/**
 * Calls a function for each range of the devices that a copy of the filesystem must include.
 *
 * These are all copies of everything allocated in the extent tree, data and metadata, also in system chunks; with RAID5
 * and RAID6 all full stripes that are used at all, because parity depends on the whole stripe; and all superblocks.
 * Nothing else on the target device is ever read. What precedes the first superblock, such as a boot loader, is not
 * part of the filesystem.
 *
 * Ranges are ordered by devid and address. Missing devices are included as far as the chunks describe them. Memory use
 * depends on the number of chunks. The extent items of a chunk are read once for each of its stripes on the requested
 * devices.
 *
 * @param devid	only this device; 0: all devices
 * @return 0; -EOPNOTSUPP: the extent tree alone does not tell what is used, for the reason in the message: a feature
 *	   that is unknown (also in compat_ro) or only readable, a log tree, or an unfinished device replace; -EBUSY: a
 *	   transaction is open; -ENOENT: no such device; what @p fn returned; -EUCLEAN: also overlapping chunks; -EIO,
 *	   -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_used_ranges(struct btrkit_fs *fs, uint64_t devid, btrkit_used_range_fn fn, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
