/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FILESYSTEM_H
#define BTRKIT_FILESYSTEM_H

/**
 * @file
 * Opening filesystems.
 *
 * Any number of threads may read one handle at once. Opening and closing it, and starting, committing and aborting a
 * transaction, need exclusive use of it. No thread may read while another changes something in a transaction, and some
 * functions fail while a transaction is open: see btrkit.h and transaction.h.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_open_options. Since: 0.1 */
enum btrkit_open_flags {
	/** Read only the superblock copy super_mirror. */
	BTRKIT_OPEN_SUPER_MIRROR = 1 << 0,
	/**
	 * Allow transactions: see transaction.h. All devices must be given unless BTRKIT_OPEN_DEGRADED is, too, and
	 * should have been opened with BTRKIT_IO_EXCLUSIVE. Filesystems that cannot be written are refused, with the
	 * reason in the message: a bad primary superblock; a log tree; an unfinished balance, device replace or
	 * conversion; a seed device, or a filesystem that was sprouted from one; a device with an older generation
	 * than the others; a device that is smaller than the filesystem assumes; unknown features; and chunks that
	 * overlap on a device, end after it, or contradict the device extents.
	 */
	BTRKIT_OPEN_WRITE = 1 << 1,
	/**
	 * Start from the roots in slot backup of the superblock's backup roots, that is, from an earlier commit. What
	 * later commits freed may have been overwritten since. Log trees are ignored. Not for writing.
	 */
	BTRKIT_OPEN_BACKUP = 1 << 2,
	/** Use the block at tree_root as the root of the root tree. Log trees are ignored. Not for writing. */
	BTRKIT_OPEN_TREE_ROOT = 1 << 3,
	/**
	 * Use the block at chunk_root as the root of the chunk tree. It must be in a system chunk of the superblock.
	 * Not for writing.
	 */
	BTRKIT_OPEN_CHUNK_ROOT = 1 << 4,
	/**
	 * Open the filesystem even if chunks and devices cannot be read, or only in part, or if a conversion was left
	 * unfinished; the note callback is called. For functions that report damage, such as btrkit_dump_tree() and
	 * btrkit_check(). Other functions fail when they need what is missing. Not for writing.
	 */
	BTRKIT_OPEN_PARTIAL = 1 << 5,
	/**
	 * Follow no symbolic link in a path: one before a slash is not a directory, and one at the end is found itself.
	 * Since: 0.2
	 */
	BTRKIT_OPEN_NO_LINKS = 1 << 6,
	/**
	 * With BTRKIT_OPEN_WRITE, or for a dry run: write also if devices are missing or stale, like Linux's mount
	 * option degraded. Each chunk must tolerate as many missing devices as Linux demands: RAID1, RAID10 and RAID5
	 * one, RAID1C3 and RAID6 two, RAID1C4 three, the others none. Stale devices are treated as missing: neither
	 * read nor written. What is written is on the other devices only, so those that were missing are stale from
	 * then on. New chunks are placed on the devices that are there, if they are too few for the profile with that
	 * of another one, as Linux does. Ignored if all devices are there. Since: 0.2
	 */
	BTRKIT_OPEN_DEGRADED = 1 << 7
};

/** A copy that a read tried, or the result of rebuilding from parity. Since: 0.1 */
struct btrkit_tried_copy {
	unsigned mirror;	/**< number of the copy, from 1 as in Linux; 0: rebuilt from parity */
	/** Location of the copy; both are 0 if it was rebuilt. A strip that parity shows to be bad has mirror 0. */
	uint64_t devid, physical;
	int err;		/**< 0: the copy was good; otherwise the negative errno for which it was rejected */
	const char *why;	/**< the reason as text; empty if the copy was good */
};

/** A read during which a copy was rejected. Since: 0.2 */
struct btrkit_bad_read {
	uint64_t logical, length;
	bool served;		/**< another copy was good; the bad one is not rewritten */
	unsigned num_copies;
	/**
	 * The copies in the order in which they were tried, the good one last. If several ways to rebuild from parity
	 * failed, only the first is listed.
	 */
	const struct btrkit_tried_copy *copies;
};

/**
 * Reports a read during which a copy was rejected. It is not called for missing or stale devices, which are noted when
 * the filesystem is opened. It is called during the read, by the thread that reads, and so by several threads at once
 * if several read. @p bad is valid only during the call.
 *
 * Since: 0.2
 */
typedef void (*btrkit_bad_read_fn)(void *ctx, const struct btrkit_bad_read *bad);

/**
 * Reports devices that are missing or stale when a filesystem is opened. The cause is #BTRKIT_CAUSE_DEVICE_MISSING or
 * #BTRKIT_CAUSE_DEVICE_STALE, the message is a whole line, and @c devid is set if there is one such device. @p what is
 * valid only during the call.
 *
 * Since: 0.2
 */
typedef void (*btrkit_device_note_fn)(void *ctx, const struct btrkit_error *what);

/** Options of btrkit_fs_open(). Initialise with BTRKIT_OPEN_OPTIONS_INIT. Since: 0.1 */
struct btrkit_open_options {
	unsigned flags;			/**< enum btrkit_open_flags; unknown ones are refused */
	unsigned super_mirror;		/**< with BTRKIT_OPEN_SUPER_MIRROR: 0, 1 or 2 */
	size_t cache_bytes;		/**< size of the tree block cache in bytes; 0: 64 MiB */
	btrkit_note_fn note;		/**< may be NULL */
	void *note_ctx;
	btrkit_bad_read_fn bad_read;	/**< may be NULL */
	void *bad_read_ctx;
	unsigned backup;		/**< with BTRKIT_OPEN_BACKUP: 0 to 3 */
	uint64_t tree_root;		/**< these two: logical addresses */
	uint64_t chunk_root;
	/** Called in place of @c note for devices, with @c note_ctx. NULL: @c note is called. Since: 0.2 */
	btrkit_device_note_fn device_note;
	uint64_t reserved[3];	/**< 0 */
};

#define BTRKIT_OPEN_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Opens a filesystem, for reading unless the flags include BTRKIT_OPEN_WRITE.
 *
 * Devices that do not belong together are refused by name: of different filesystems, the same device or a copy of it
 * twice, one device in the place of another, or an unfinished change of the fsid. Seed devices are opened with their
 * filesystem if they are given. The note callback is told of missing devices and seeds, stale devices, and devices that
 * were removed from the filesystem.
 *
 * On each device the primary superblock is used if it is valid. Otherwise a mirror is used, which is noted. A mirror
 * that is newer than a valid primary is noted but not used. If there are several devices, the superblock with the
 * highest generation is used for the filesystem. A device with an older generation is stale: it is read only if no
 * other device has the data, or if a checksum or a generation can confirm what it holds.
 *
 * If devices are missing, everything that the others hold can be read. The note callback is told once which devices are
 * missing, and how much cannot be read without them. Which chunks these are, btrkit_chunks() says.
 *
 * @param devices	the devices, in any order; owned by the handle on success, by the caller otherwise
 * @param n	number of devices
 * @param ret	receives the handle; free it with btrkit_fs_close()
 * @return 0; -EMEDIUMTYPE: not a btrfs filesystem; -EOPNOTSUPP: a feature that cannot be read, or written, named in the
 *	   message; -ENOENT: the slot has no backup roots; -EROFS: BTRKIT_OPEN_WRITE and a read-only device; -EINVAL:
 *	   invalid options, or devices that do not belong together; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_fs_open(struct btrkit_io *const *devices, size_t n, const struct btrkit_open_options *opts,
		   struct btrkit_fs **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Where btrkit_fs_scan() looks. Since: 0.1 */
enum btrkit_scan_source {
	/**
	 * The devices that the kernel lists for a mounted filesystem with this fsid, with its seeds. They are found
	 * first.
	 */
	BTRKIT_SCAN_MOUNTED = 1 << 0,
	/** The cache of libblkid, which is not changed. */
	BTRKIT_SCAN_CACHE = 1 << 1,
	/** The superblocks of all block devices, except those that another block device is built on. */
	BTRKIT_SCAN_DEVICES = 1 << 2,
	BTRKIT_SCAN_ALL = BTRKIT_SCAN_MOUNTED | BTRKIT_SCAN_CACHE | BTRKIT_SCAN_DEVICES
};

/**
 * Finds the devices of a filesystem that are missing from @p devices among the block devices of this machine.
 *
 * It finds nothing if @p n is already the number of devices in the superblock of the first one. btrkit_fs_open() does
 * not search by itself, and image files are never searched for. Devices that cannot be read are ignored. Whatever a
 * source lists, a device is accepted only by its superblock.
 *
 * @param devices	the devices that are known; they remain the caller's
 * @param n	number of devices in @p devices, at least 1
 * @param sources	enum btrkit_scan_source; unknown ones are refused
 * @param found	array of @p max elements; receives the devices, opened for reading and named by their paths. They are
 *		the caller's: close them, or pass them to btrkit_fs_open()
 * @param max	size of @p found
 * @param count	receives the number of devices found, which may be less than is missing; 0 after a failure
 * @return 0; -EINVAL: no device, an unknown source, or two devices with one number, such as a device and its copy, both
 *	   of which the message names; -ENOMEM; or as btrkit_fs_open() if the first superblock cannot be used
 * Since: 0.1
 */
int btrkit_fs_scan(struct btrkit_io *const *devices, size_t n, unsigned sources, struct btrkit_io **found, size_t max,
		   size_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Opens the device or image file at a path and the filesystem on it in one call; btrkit_fs_close() closes everything
 * again. For several known devices, or other flags for the devices, use btrkit_io_open() and btrkit_fs_open().
 *
 * With BTRKIT_OPEN_WRITE, all devices are opened with BTRKIT_IO_WRITE and BTRKIT_IO_EXCLUSIVE, otherwise with
 * BTRKIT_IO_READ. After a failure nothing remains open.
 *
 * @param path	as for btrkit_io_open(): a part of a device may follow a question mark
 * @param sources	enum btrkit_scan_source: where to look for further devices, as by btrkit_fs_scan(); 0: nowhere,
 *		and then what only they hold cannot be read
 * @param opts	as for btrkit_fs_open(); may be NULL
 * @param ret	receives the handle; free it with btrkit_fs_close()
 * @return as btrkit_io_open(), btrkit_fs_scan() and btrkit_fs_open()
 * Since: 0.2
 */
int btrkit_fs_open_path(const char *path, unsigned sources, const struct btrkit_open_options *opts,
			struct btrkit_fs **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Closes a filesystem and its devices. NULL is allowed. An open transaction is aborted as by btrkit_txn_abort(), and
 * its handle freed. Files and printers must have been freed before.
 *
 * @return NULL
 * Since: 0.1
 */
struct btrkit_fs *btrkit_fs_close(struct btrkit_fs *fs);

/** The main values of the superblock. Since: 0.1 */
struct btrkit_fs_info {
	uint8_t fsid[16];
	char label[257];		/**< terminated; bytes as on disk */
	uint64_t generation;
	uint64_t total_bytes;
	uint64_t bytes_used;
	uint64_t num_devices;
	uint32_t sectorsize;
	uint32_t nodesize;
	unsigned super_mirror;		/**< the copy that was used: 0, 1 or 2 */
	const char *csum_name;		/**< a constant string */
	uint64_t log_root;		/**< logical address of the log root tree; 0: no log tree */
	uint64_t data_copies;		/**< most copies that any chunk with data has. Since: 0.2 */
	uint64_t reserved[6];	/**< 0 */
};

/** Returns the main values of the superblock in @p info. Since: 0.1 */
void btrkit_fs_get_info(const struct btrkit_fs *fs, struct btrkit_fs_info *info);

BTRKIT_END_DECLS

#endif
