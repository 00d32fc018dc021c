/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_H
#define BTRKIT_MKFS_H

/**
 * @file
 * Making filesystems.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/** How block groups keep their bytes. Since: 0.1 */
enum btrkit_profile { BTRKIT_SINGLE, BTRKIT_DUP };

/** Flags of struct btrkit_mkfs_options. Since: 0.1 */
enum btrkit_mkfs_flags {
	/** Derive every UUID that is not given from the fsid, so that equal options make equal bytes. */
	BTRKIT_MKFS_REPRODUCIBLE = 1 << 0,
	/** Discard the whole device first. */
	BTRKIT_MKFS_DISCARD = 1 << 1
};

/**
 * What to make. Initialise with BTRKIT_MKFS_OPTIONS_INIT: the defaults of mkfs.btrfs 6.19.
 *
 * Since: 0.1
 */
struct btrkit_mkfs_options {
	unsigned flags;			/**< BTRKIT_MKFS_*; unknown ones are refused */
	const char *label;		/**< at most 255 bytes, no newline; NULL: none */
	const uint8_t *fsid;		/**< 16 bytes; NULL: random */
	const uint8_t *device_uuid;	/**< 16 bytes; NULL: random, or derived from the fsid */
	uint32_t nodesize;		/**< 0: 16384, or the sectorsize if that is larger */
	uint32_t sectorsize;		/**< 0: 4096 */
	uint64_t byte_count;		/**< of the device, how much to use; 0: all */
	enum btrkit_profile data;	/**< profile of file data */
	enum btrkit_profile metadata;	/**< profile of trees, the chunk tree included */
	bool mixed;			/**< data and metadata share their block groups */
	uint64_t incompat;		/**< features, as bits of the superblock; see btrkit_mkfs_features() */
	uint64_t compat_ro;
	int64_t time;			/**< seconds since the epoch, of everything that has a time */
	/**
	 * Told how far discarding is, in bytes; a value other than 0, a negative errno, ends it, and leaves a device
	 * without a filesystem. May be NULL.
	 */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *progress_ctx;
};

/** mixed-backref, big-metadata, extref, skinny-metadata, no-holes; and free-space-tree, block-group-tree. */
#define BTRKIT_MKFS_INCOMPAT_DEFAULT 0x361
#define BTRKIT_MKFS_COMPAT_RO_DEFAULT 0xb

#define BTRKIT_MKFS_OPTIONS_INIT                                                                          \
	{                                                                                                 \
		0, NULL, NULL, NULL, 0, 0, 0, BTRKIT_SINGLE, BTRKIT_DUP, false, BTRKIT_MKFS_INCOMPAT_DEFAULT, \
			BTRKIT_MKFS_COMPAT_RO_DEFAULT, 0, NULL, NULL                                      \
	}

/** A block group of a new filesystem. Since: 0.1 */
struct btrkit_mkfs_group {
	uint64_t type;	/**< BTRFS_BLOCK_GROUP_* */
	uint64_t logical;
	uint64_t length;
};

/** What was made. Since: 0.1 */
struct btrkit_mkfs_result {
	uint8_t fsid[16];
	uint8_t device_uuid[16];
	uint32_t nodesize, sectorsize;
	uint64_t total_bytes;
	uint64_t incompat, compat_ro;	/**< after the rules between features */
	struct btrkit_mkfs_group groups[3];
	unsigned num_groups;
};

/**
 * The smallest device on which btrkit_mkfs() makes a filesystem with these options, in bytes.
 *
 * @return 0 or -EINVAL
 * Since: 0.1
 */
int btrkit_mkfs_min_size(const struct btrkit_mkfs_options *opts, uint64_t *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes a filesystem on @p device, which was opened for writing; what is there is lost. Old superblocks go first and
 * the new one comes last, after all else has reached the medium: at no moment is there half a filesystem to mount.
 *
 * @param result	may be NULL
 * @return 0; -EINVAL: an option, or a device that is too small; -EOPNOTSUPP: a feature that is not written, by name;
 *	   -ENOSPC, -EIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_mkfs(struct btrkit_io *device, const struct btrkit_mkfs_options *opts, struct btrkit_mkfs_result *result,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
