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
enum btrkit_profile {
	/**
	 * What mkfs.btrfs takes: data single; metadata in two copies, on one device DUP, on several RAID1; with mixed
	 * block groups single.
	 */
	BTRKIT_PROFILE_DEFAULT,
	BTRKIT_PROFILE_SINGLE,
	BTRKIT_PROFILE_DUP,	/**< twice on one device */
	BTRKIT_PROFILE_RAID0,
	BTRKIT_PROFILE_RAID1,	/**< on two devices */
	BTRKIT_PROFILE_RAID1C3, /**< on three */
	BTRKIT_PROFILE_RAID1C4, /**< on four */
	BTRKIT_PROFILE_RAID10,
	BTRKIT_PROFILE_RAID5,
	BTRKIT_PROFILE_RAID6
};

/** Kinds of checksums, with the numbers that superblocks have for them. Since: 0.1 */
enum btrkit_csum { BTRKIT_CSUM_CRC32C, BTRKIT_CSUM_XXHASH64, BTRKIT_CSUM_SHA256, BTRKIT_CSUM_BLAKE2B };

/** What was made of a device; its number in the filesystem is that in the array, from 1. Since: 0.1 */
struct btrkit_mkfs_device {
	uint64_t total_bytes; /**< that the filesystem uses of it */
	uint8_t uuid[16];
	uint64_t reserved[2];	/**< 0 */
};

/** From what a new filesystem is filled. Since: 0.1 */
enum btrkit_source_kind {
	BTRKIT_SOURCE_DIRECTORY = 1,
	BTRKIT_SOURCE_ARCHIVE,	/**< what libarchive reads: tar, pax, cpio, compressed or not */
	BTRKIT_SOURCE_MANIFEST	/**< a dumpfile of composefs, with contents from a directory */
};

/** A directory that becomes a subvolume. Since: 0.1 */
struct btrkit_mkfs_subvolume {
	const char *path;	/**< in the source */
	bool readonly;
	bool is_default;	/**< what is mounted when nothing else is asked for; of one at most */
	uint64_t reserved[2];	/**< 0 */
};

/** Flags of a file, or of a directory and all in it as far as its subvolume reaches. Since: 0.1 */
struct btrkit_mkfs_inode_flags {
	const char *path;	/**< in the source */
	bool nodatacow;		/**< implies nodatasum for regular files */
	bool nodatasum;
	uint64_t reserved[2];	/**< 0 */
};

/** Flags of struct btrkit_mkfs_source. Since: 0.1 */
enum btrkit_source_flags {
	/** root_uid and root_gid, below 2^32-1, are the owners of the top directory. */
	BTRKIT_SOURCE_ROOT_OWNER = 1 << 0,
	/**
	 * Take none of the attributes that come from the host rather than from who made the files: system.*,
	 * trusted.overlay.*, security.selinux, unless with_xattrs names them.
	 */
	BTRKIT_SOURCE_NO_HOST_XATTRS = 1 << 1,
	/**
	 * Take the whiteouts of overlay and container layers in an archive or a manifest as the files that they are,
	 * instead of refusing them.
	 */
	BTRKIT_SOURCE_WHITEOUTS = 1 << 2
};

/**
 * What to fill a new filesystem with. All that is NULL or 0 asks for nothing.
 *
 * Since: 0.1
 */
struct btrkit_mkfs_source {
	enum btrkit_source_kind kind;
	unsigned flags;			/**< BTRKIT_SOURCE_*; unknown ones are refused */
	const char *path;		/**< "-" of an archive or manifest: standard input */
	const char *basedir;		/**< of a manifest: where contents are; NULL: the working directory */
	const struct btrkit_mkfs_subvolume *subvolumes;
	size_t num_subvolumes;
	const struct btrkit_mkfs_inode_flags *inode_flags;
	size_t num_inode_flags;
	/**
	 * Patterns, as of fnmatch(3) with FNM_PATHNAME, of what is left out, directories with all in them: one without
	 * a slash is held against the last part of a path, any other against the whole path, which has no slash in
	 * front. They match bytes, whatever the locale.
	 */
	const char *const *exclude;
	size_t num_exclude;
	const char *const *with_xattrs;	   /**< patterns of names that are taken in any case */
	size_t num_with_xattrs;
	const char *const *without_xattrs; /**< patterns of names that are not */
	size_t num_without_xattrs;
	uint32_t root_uid, root_gid;
	uint64_t reserved[8];	/**< 0 */
};

/** Flags of struct btrkit_mkfs_options. Since: 0.1 */
enum btrkit_mkfs_flags {
	/** Derive every UUID that is not given from the fsid, so that equal options make equal bytes. */
	BTRKIT_MKFS_REPRODUCIBLE = 1 << 0,
	/** Discard the whole devices first, all at once. */
	BTRKIT_MKFS_DISCARD = 1 << 1,
	/** Count what subvolumes refer to and own (qgroups), or in the simple way if incompat says so. */
	BTRKIT_MKFS_QUOTA = 1 << 2,
	/**
	 * With a source: give the image files the size that is needed and no more, whatever size they have; with
	 * byte_count that size at least. See also free_bytes and free_percent. What cannot be resized keeps its size,
	 * and the filesystem takes what it needs of it. An image file is empty after a failure.
	 */
	BTRKIT_MKFS_FIT = 1 << 3,
	/**
	 * With a source: no file gets a time later than @ref btrkit_mkfs_options.time, and times of access, change and
	 * birth, which are the host's, follow from those of modification and from that.
	 */
	BTRKIT_MKFS_CLAMP_TIMES = 1 << 4,
	/**
	 * With a source: equal sources and options make equal bytes, whatever the host. The fsid, if it is not given,
	 * is derived from all that goes in; without BTRKIT_MKFS_CLAMP_TIMES times are clamped to the latest
	 * modification in the source. Implies BTRKIT_MKFS_REPRODUCIBLE.
	 */
	BTRKIT_MKFS_DETERMINISTIC = 1 << 5,
	/** With a source: write nothing, but say in the result what would come out. Sizes of devices do not matter. */
	BTRKIT_MKFS_DRY = 1 << 6,
	/**
	 * With a source: open what was written, and compare every name, attribute and byte with the source, and every
	 * copy with the first. What the source is read from must stay as it is until then; of an archive numbers that
	 * its files' contents had are compared. What differs is told by warning(), a line for each of the first twenty;
	 * there is no filesystem then, and the call fails with -EUCLEAN.
	 */
	BTRKIT_MKFS_VERIFY = 1 << 7,
	/**
	 * With a directory: the image files share the blocks of the directory's files, where these are whole, instead
	 * of copies. Both must be on one filesystem that can do it, else the call fails. Nothing is compressed then.
	 */
	BTRKIT_MKFS_SHARE = 1 << 8
};

/** How far filling is. A total is 0 as long as it is not known: of a source that is read only once. Since: 0.1 */
struct btrkit_mkfs_so_far {
	uint64_t bytes, total_bytes; /**< of the contents of files */
	uint64_t files, total_files; /**< that have contents */
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
	const uint8_t *device_uuid;	/**< 16 bytes, of the first device; NULL: random, or derived from the fsid */
	uint32_t nodesize;		/**< 0: 16384, or the sectorsize if that is larger */
	uint32_t sectorsize;		/**< 0: 4096 */
	uint64_t byte_count;		/**< how much to use of each device, the first has it; 0: all */
	enum btrkit_profile data;	/**< of file data */
	enum btrkit_profile metadata;	/**< of trees, the chunk tree included */
	bool mixed;			/**< data and metadata share their block groups */
	enum btrkit_csum csum;		/**< checksums of data and trees */
	uint64_t incompat;		/**< features, as bits of the superblock; see btrkit_mkfs_features() */
	uint64_t compat_ro;
	int64_t time;			/**< seconds since the epoch, of everything that has a time */
	/**
	 * Told how far discarding is, in bytes of all devices; a value other than 0, a negative errno, ends it, and
	 * leaves devices without a filesystem. It is called by the caller's thread. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	struct btrkit_mkfs_device *made; /**< filled in, one for each device; may be NULL */
	const struct btrkit_mkfs_source *source; /**< what to fill it with; NULL: nothing */
	enum btrkit_compression compression;	 /**< of what is filled in, where it saves room */
	int compression_level; /**< 0: the default; 1 to 9 for zlib, 1 to 15 for zstd; 0 for lzo and without */
	unsigned threads;			 /**< that read, compress and checksum; 0: as many as processors */
	uint64_t free_bytes;			 /**< with BTRKIT_MKFS_FIT: to leave free on each; up to 2^63 - 1 */
	unsigned free_percent;			 /**< likewise, of what is needed; up to 65535 */
	/**
	 * Told with progress_ctx what was taken in so far. A value other than 0, a negative errno, ends it, and leaves
	 * devices without a filesystem. It is called by the caller's thread. May be NULL.
	 */
	int (*filling)(void *ctx, const struct btrkit_mkfs_so_far *so_far);
	/**
	 * Told with progress_ctx what was not done as the source has it, and where a failure leaves superblocks that
	 * could not be removed: a line each. May be NULL.
	 */
	void (*warning)(void *ctx, const char *what);
	/** As filling(), of bytes that were verified: of files, of trees and of what has several copies. */
	btrkit_progress_fn verifying;
	/**
	 * A file of lines `PATH PRIORITY`, as mksquashfs -sort takes it, for a directory or manifest: contents of files
	 * with a higher priority lie before others. NULL: in the order of their paths.
	 */
	const char *sort;
	uint64_t reserved[8];	/**< 0 */
};

/** mixed-backref, big-metadata, extref, skinny-metadata, no-holes; and free-space-tree, block-group-tree. */
#define BTRKIT_MKFS_INCOMPAT_DEFAULT 0x361
#define BTRKIT_MKFS_COMPAT_RO_DEFAULT 0xb

#define BTRKIT_MKFS_OPTIONS_INIT \
	{ \
		0, NULL, NULL, NULL, 0, 0, 0, BTRKIT_PROFILE_DEFAULT, BTRKIT_PROFILE_DEFAULT, false, \
		BTRKIT_CSUM_CRC32C, BTRKIT_MKFS_INCOMPAT_DEFAULT, BTRKIT_MKFS_COMPAT_RO_DEFAULT, 0, NULL, NULL, NULL, \
		NULL, BTRKIT_COMPRESSION_NONE, 0, 0, 0, 0, NULL, NULL, NULL, NULL, { 0 } \
	}

/** A block group of a new filesystem, or all of a kind. Since: 0.1 */
struct btrkit_mkfs_group {
	uint64_t type;	/**< BTRFS_BLOCK_GROUP_* */
	uint64_t logical;
	uint64_t length;
};

/** What was made. Since: 0.1 */
struct btrkit_mkfs_result {
	uint8_t fsid[16];
	uint8_t device_uuid[16]; /**< of the first */
	uint32_t nodesize, sectorsize;
	uint64_t total_bytes;
	uint64_t incompat, compat_ro;	/**< after the rules between features */
	struct btrkit_mkfs_group groups[3]; /**< of several of a kind where the first lies, and all their bytes */
	unsigned num_groups;
	/* Of what was filled in. */
	uint64_t inodes;	  /**< all kinds, directories too */
	uint64_t files;		  /**< regular files with contents */
	uint64_t file_bytes;	  /**< their contents, as they are read */
	uint64_t compressed_from; /**< bytes that were compressed */
	uint64_t compressed_to;	  /**< what became of them */
	uint64_t data_bytes;	  /**< in data extents */
	uint64_t metadata_bytes;  /**< in tree blocks, one copy */
	/** Version of the library that compressed: equal ones make equal bytes. NULL: nothing was compressed. */
	const char *compressor;
	uint64_t verified;	  /**< inodes that were found to be as in the source */
	uint64_t verified_bytes;  /**< of files, likewise */
	uint64_t reserved[8];	/**< 0 */
};

/**
 * Judges the options for a filesystem on @p n devices: how many bytes each needs at least. Devices of different sizes
 * may need more, when chunks do not fit onto the smaller ones.
 *
 * @return 0; -EINVAL: also too few devices for a profile; -EOPNOTSUPP
 * Since: 0.1
 */
int btrkit_mkfs_min_size(const struct btrkit_mkfs_options *opts, size_t n, uint64_t *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Makes a filesystem on @p n devices, which were opened for writing; what is there is lost. Old superblocks go first
 * and the new ones come last, after all else has reached the media: at no moment is there half a filesystem to mount.
 * What is done on the devices is done on all of them at once, by threads, if they are several.
 *
 * @param result	may be NULL
 * @param devices	they stay the caller's
 * @return 0; -EINVAL: an option, or a device that is too small; -EOPNOTSUPP: a feature that is not written, by name;
 *	   -ENOSPC: also when there is no room for a chunk of a profile; -EIO, -ENOMEM. Without a source before anything
 *	   is written where it is not the device that fails. With one, whose failures are returned as they are (-ESTALE:
 *	   a file changed; -EUCLEAN: a broken archive or manifest; -EINVAL: a device is among its files, too), there may
 *	   be no filesystem any more, if contents were read already
 * Since: 0.1
 */
int btrkit_mkfs(struct btrkit_io *const *devices, size_t n, const struct btrkit_mkfs_options *opts,
		struct btrkit_mkfs_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints what was made as JSON Lines: a header and an object.
 *
 * @param opts	with which it was made; its devices, if it has them, are those that are listed
 * @param names	of the devices
 * @param n	how many they are; 0: none is listed
 * @param result	what was made
 * @return 0; -ENOMEM; what @p write returned
 * Since: 0.1
 */
int btrkit_mkfs_result_print(const struct btrkit_mkfs_options *opts, const struct btrkit_mkfs_result *result,
			     const char *const *names, size_t n, btrkit_write_fn write, void *ctx,
			     struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
