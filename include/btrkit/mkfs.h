/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_H
#define BTRKIT_MKFS_H

/**
 * @file
 * Creating filesystems, empty or filled with files.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/** Block group profiles. Since: 0.1 */
enum btrkit_profile {
	/**
	 * The default of mkfs.btrfs: single for data; for metadata DUP on one device and RAID1 on several; single for
	 * mixed block groups.
	 */
	BTRKIT_PROFILE_DEFAULT,
	BTRKIT_PROFILE_SINGLE,
	BTRKIT_PROFILE_DUP,	/**< two copies on one device */
	BTRKIT_PROFILE_RAID0,
	BTRKIT_PROFILE_RAID1,	/**< two copies on two devices */
	BTRKIT_PROFILE_RAID1C3, /**< three copies */
	BTRKIT_PROFILE_RAID1C4, /**< four copies */
	BTRKIT_PROFILE_RAID10,
	BTRKIT_PROFILE_RAID5,
	BTRKIT_PROFILE_RAID6
};

/** Checksum types, numbered as in superblocks. Since: 0.1 */
enum btrkit_csum { BTRKIT_CSUM_CRC32C, BTRKIT_CSUM_XXHASH64, BTRKIT_CSUM_SHA256, BTRKIT_CSUM_BLAKE2B };

/** A device of a new filesystem. Its devid is its position in the array of devices, from 1. Since: 0.1 */
struct btrkit_mkfs_device {
	uint64_t total_bytes; /**< bytes of it that the filesystem uses */
	uint8_t uuid[16];
	uint64_t reserved[2];	/**< 0 */
};

/** Kinds of sources that can fill a new filesystem. Since: 0.1 */
enum btrkit_source_kind {
	BTRKIT_SOURCE_DIRECTORY = 1,
	BTRKIT_SOURCE_ARCHIVE,	/**< anything that libarchive reads: tar, pax, cpio; compressed or not */
	BTRKIT_SOURCE_MANIFEST	/**< a composefs dump file, with file contents from a directory */
};

/** A directory that becomes a subvolume. Since: 0.1 */
struct btrkit_mkfs_subvolume {
	const char *path;	/**< in the source */
	bool readonly;
	bool is_default;	/**< make it the default subvolume; for at most one */
	uint64_t reserved[2];	/**< 0 */
};

/** Inode flags of a file, or of a directory and everything below it in the same subvolume. Since: 0.1 */
struct btrkit_mkfs_inode_flags {
	const char *path;	/**< in the source */
	bool nodatacow;		/**< implies nodatasum for regular files */
	bool nodatasum;
	uint64_t reserved[2];	/**< 0 */
};

/** Flags of struct btrkit_mkfs_source. Since: 0.1 */
enum btrkit_source_flags {
	/** The top directory is owned by root_uid and root_gid, which must be less than 2^32-1. */
	BTRKIT_SOURCE_ROOT_OWNER = 1 << 0,
	/**
	 * Ignore attributes that stem from the host rather than from the files: system.*, trusted.overlay.* and
	 * security.selinux, unless with_xattrs matches them.
	 */
	BTRKIT_SOURCE_NO_HOST_XATTRS = 1 << 1,
	/**
	 * Copy whiteouts of overlayfs and container layers in an archive or a manifest as the files that they are,
	 * instead of refusing them.
	 */
	BTRKIT_SOURCE_WHITEOUTS = 1 << 2,
	/**
	 * With a directory: take files and directories that change while they are read as they were found first,
	 * instead of failing: a file that grows up to its size then, one that shrinks with zeros up to that size, and
	 * without names that were removed. They must stay where they are. See @ref btrkit_mkfs_result.changed. Not with
	 * BTRKIT_MKFS_VERIFY or BTRKIT_MKFS_SHARE. Since: 0.2
	 */
	BTRKIT_SOURCE_ACCEPT_CHANGES = 1 << 3
};

/** What to fill a new filesystem with. Members that are NULL or 0 have no effect. Since: 0.1 */
struct btrkit_mkfs_source {
	enum btrkit_source_kind kind;
	unsigned flags;			/**< enum btrkit_source_flags; unknown ones are refused */
	const char *path;		/**< of an archive or a manifest, "-" means standard input; the lowest layer */
	const char *basedir;		/**< of a manifest: directory of the contents; NULL: working directory */
	const struct btrkit_mkfs_subvolume *subvolumes;
	size_t num_subvolumes;
	const struct btrkit_mkfs_inode_flags *inode_flags;
	size_t num_inode_flags;
	/**
	 * fnmatch(3) patterns, with FNM_PATHNAME, of files to leave out, directories with all their contents. A pattern
	 * without a slash is matched against the last component of a path, any other against the whole path, which has
	 * no leading slash. Bytes are matched, whatever the locale.
	 */
	const char *const *exclude;
	size_t num_exclude;
	const char *const *with_xattrs;	   /**< patterns of attribute names to copy in any case */
	size_t num_with_xattrs;
	/**
	 * Patterns of attribute names to ignore. An attribute that Linux could not show, or not remove again, is
	 * refused otherwise: of an unknown namespace, or with a value that is no ACL, no capability, no compression.
	 */
	const char *const *without_xattrs;
	size_t num_without_xattrs;
	uint32_t root_uid, root_gid;
	/**
	 * Further directories or archives, of the same kind as @c path, that are layers over it, the lowest first. A
	 * file hides those of the same name below; directories are merged, and have the attributes of the highest.
	 * Whiteouts hide what is below instead of being copied: in archives members `.wh.NAME` and `.wh..wh..opq`; in
	 * both kinds those of overlayfs. Since: 0.2
	 */
	const char *const *layers;
	size_t num_layers;
	uint64_t reserved[6];	/**< 0 */
};

/** Flags of struct btrkit_mkfs_options. Those from BTRKIT_MKFS_FIT on need a source. Since: 0.1 */
enum btrkit_mkfs_flags {
	/** Derive all UUIDs that are not given from the fsid, so that equal options and fsids make equal bytes. */
	BTRKIT_MKFS_REPRODUCIBLE = 1 << 0,
	/** Discard the contents of all devices first, in parallel. */
	BTRKIT_MKFS_DISCARD = 1 << 1,
	/** Enable quotas: qgroups, or simple quotas if incompat has that feature. */
	BTRKIT_MKFS_QUOTA = 1 << 2,
	/**
	 * Give image files exactly the size that is needed, whatever their size was; with byte_count, at least that
	 * size. See also free_bytes and free_percent. What cannot be resized keeps its size, and the filesystem uses as
	 * much of it as it needs. After a failure image files are empty, unless it occurred before they were touched.
	 */
	BTRKIT_MKFS_FIT = 1 << 3,
	/**
	 * Limit modification times to @ref btrkit_mkfs_options.time, and derive access, change and creation times,
	 * which depend on the host, from the modification time and that limit.
	 */
	BTRKIT_MKFS_CLAMP_TIMES = 1 << 4,
	/**
	 * Make equal bytes from equal sources and options on any host. The fsid, unless given, is derived from
	 * everything that goes in. Without BTRKIT_MKFS_CLAMP_TIMES, times are limited to the latest modification time
	 * in the source. Implies BTRKIT_MKFS_REPRODUCIBLE.
	 */
	BTRKIT_MKFS_DETERMINISTIC = 1 << 5,
	/** Write nothing, and report in the result what would be created. The sizes of the devices do not matter. */
	BTRKIT_MKFS_DRY = 1 << 6,
	/**
	 * Read back what was written, and compare each name, attribute and byte with the source, and each copy with the
	 * first. The source must not change until then; the contents of an archive are compared by digests. Differences
	 * are reported through warning(), one line for each of the first twenty. There is no filesystem then, and the
	 * call fails with -EUCLEAN.
	 */
	BTRKIT_MKFS_VERIFY = 1 << 7,
	/**
	 * With a directory: share the blocks of its files with the image files instead of copying them (reflinks),
	 * wherever a block is shared as a whole. Both must be on one filesystem that supports that, or the call fails.
	 * Nothing is compressed.
	 */
	BTRKIT_MKFS_SHARE = 1 << 8
};

/** Progress of filling. A total is 0 while it is unknown, as for a source that can be read only once. Since: 0.1 */
struct btrkit_mkfs_so_far {
	uint64_t bytes, total_bytes; /**< of file contents */
	uint64_t files, total_files; /**< files with contents */
};

/**
 * Options of btrkit_mkfs(). Initialise with BTRKIT_MKFS_OPTIONS_INIT, which has the defaults of mkfs.btrfs 7.3.
 *
 * Since: 0.1
 */
struct btrkit_mkfs_options {
	unsigned flags;			/**< enum btrkit_mkfs_flags; unknown ones are refused */
	const char *label;		/**< at most 255 bytes, without a newline; NULL: none */
	const uint8_t *fsid;		/**< 16 bytes; NULL: random */
	const uint8_t *device_uuid;	/**< 16 bytes, for the first device; NULL: random, or derived from the fsid */
	uint32_t nodesize;		/**< 0: 16384, or the sectorsize if that is larger or with mixed */
	uint32_t sectorsize;		/**< 0: 4096 */
	uint64_t byte_count;		/**< bytes to use of each device; the first must have them; 0: all */
	enum btrkit_profile data;	/**< of file data */
	enum btrkit_profile metadata;	/**< of trees, the chunk tree included */
	bool mixed;			/**< data and metadata share block groups */
	enum btrkit_csum csum;		/**< checksum type of data and metadata */
	uint64_t incompat;		/**< feature bits as in the superblock; see btrkit_features() */
	uint64_t compat_ro;
	int64_t time;			/**< of everything that has a time, in seconds since the epoch */
	/**
	 * Reports the progress of discarding, in bytes of all devices, from the caller's thread. A value other than 0,
	 * a negative errno, stops the work, and leaves no filesystem on the devices. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	struct btrkit_mkfs_device *made; /**< receives one element for each device; may be NULL */
	const struct btrkit_mkfs_source *source; /**< what to fill it with; NULL: nothing */
	enum btrkit_compression compression;	 /**< of the source's files, where it saves space */
	int compression_level; /**< 0: the default; 1 to 9 for zlib, 1 to 15 for zstd; 0 for lzo and none */
	unsigned threads;			 /**< that read, compress and checksum; 0: one per CPU */
	uint64_t free_bytes;			 /**< with BTRKIT_MKFS_FIT: bytes to leave free; up to 2^63 - 1 */
	unsigned free_percent;			 /**< the same as a percentage of what is needed; up to 65535 */
	/**
	 * Reports the progress of filling, with progress_ctx, from the caller's thread. A value other than 0, a
	 * negative errno, stops the work, and leaves no filesystem on the devices. May be NULL.
	 */
	int (*filling)(void *ctx, const struct btrkit_mkfs_so_far *so_far);
	/**
	 * Called with progress_ctx and a line of text for whatever differs from the source, and if a failure leaves
	 * superblocks that cannot be removed. May be NULL.
	 */
	void (*warning)(void *ctx, const char *what);
	/** As filling(), for bytes verified: of files, of trees, and of further copies. May be NULL. */
	btrkit_progress_fn verifying;
	/**
	 * Path of a file with lines `PATH PRIORITY`, as for mksquashfs -sort: contents of files with a higher priority
	 * are placed first. Not for archives. NULL: in the order of their paths.
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

/** A block group of a new filesystem, or all of one type. Since: 0.1 */
struct btrkit_mkfs_group {
	uint64_t type;	/**< BTRFS_BLOCK_GROUP_* */
	uint64_t logical;
	uint64_t length;
};

/** The filesystem that was created. Since: 0.1 */
struct btrkit_mkfs_result {
	uint8_t fsid[16];
	uint8_t device_uuid[16]; /**< of the first device */
	uint32_t nodesize, sectorsize;
	uint64_t total_bytes;
	uint64_t incompat, compat_ro;	/**< after the rules between features were applied */
	struct btrkit_mkfs_group groups[3]; /**< one per type: address of the first group, length of all */
	unsigned num_groups;
	/* With a source: */
	uint64_t inodes;	  /**< of all types, directories included */
	uint64_t files;		  /**< regular files with contents */
	uint64_t file_bytes;	  /**< bytes of their contents, uncompressed */
	uint64_t compressed_from; /**< bytes before compression */
	uint64_t compressed_to;	  /**< bytes after compression */
	uint64_t data_bytes;	  /**< of data extents */
	uint64_t metadata_bytes;  /**< of tree blocks, one copy */
	/** Version of the compression library: equal ones make equal bytes. NULL: nothing was compressed. */
	const char *compressor;
	uint64_t verified;	  /**< inodes compared with the source and found equal */
	uint64_t verified_bytes;  /**< the same in bytes of files */
	/** With BTRKIT_SOURCE_ACCEPT_CHANGES: files and directories that changed; warning() names the first 20. */
	uint64_t changed;
	const char *csum_name;	  /**< of the checksums: a constant string. Since: 0.2 */
	uint64_t reserved[6];	/**< 0 */
};

/**
 * Validates options, and returns the minimum size of each of @p n devices. Devices of different sizes may need more, if
 * chunks do not fit on the smaller ones.
 *
 * @param n	number of devices
 * @param ret	receives the size in bytes
 * @return 0; -EINVAL: an invalid option, or too few devices for a profile; -EOPNOTSUPP
 * Since: 0.1
 */
int btrkit_mkfs_min_size(const struct btrkit_mkfs_options *opts, size_t n, uint64_t *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Creates a filesystem on @p n devices, which must have been opened for writing. Their contents are lost.
 *
 * Old superblocks are removed first, and the new ones are written last, after everything else is durable: there is
 * never a partial filesystem that could be mounted. Several devices are written in parallel.
 *
 * @param devices	remain the caller's
 * @param n	number of devices
 * @param result	receives what was created; may be NULL
 * @return 0; -EINVAL: an invalid option, or a device that is too small; -EOPNOTSUPP: an unsupported feature, named in
 *	   the message; -ENOSPC: also if a chunk of some profile has no space; -EIO, -ENOMEM. Without a source, these
 *	   errors are found before anything is written, except for failing devices. With a source, errors of the source
 *	   are returned as well (-ESTALE: a file changed; -EUCLEAN: a corrupt archive or manifest; -EINVAL: a device is
 *	   one of the files to be copied); the old filesystem is lost if reading file contents had begun
 * Since: 0.1
 */
int btrkit_mkfs(struct btrkit_io *const *devices, size_t n, const struct btrkit_mkfs_options *opts,
		struct btrkit_mkfs_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
