/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FILESYSTEM_H
#define BTRKIT_FILESYSTEM_H

/**
 * @file
 * An open filesystem.
 *
 * The handle may be read by many threads at once; opening and closing are one thread's, and so are the beginning and
 * the end of a transaction. While something is changed in one nobody reads: see btrkit.h.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/** Flags of struct btrkit_open_options. Since: 0.1 */
enum btrkit_open_flags {
	/** Only read the superblock copy number super_mirror. */
	BTRKIT_OPEN_SUPER_MIRROR = 1 << 0,
	/**
	 * Transactions will be started: see transaction.h. What cannot be written is refused by name: a bad primary
	 * superblock, a log tree, an unfinished balance or device replace, a seed device or what grew out of one, a
	 * device with an older generation than the others, a conversion that was left half done, unknown features;
	 * a device that is smaller than the filesystem takes it to be; and chunks that lie on the same bytes of a
	 * device, where it has none, or where the device extents do not have them. The devices should have been opened
	 * with BTRKIT_IO_EXCLUSIVE.
	 */
	BTRKIT_OPEN_WRITE = 1 << 1,
	/**
	 * Start from the roots of slot number backup of the superblock's backup roots, as they were after an earlier
	 * commit. What that commit has let go of may have been overwritten since. Logs are not used. Not for writing.
	 */
	BTRKIT_OPEN_BACKUP = 1 << 2,
	/** The root tree's root is at tree_root, whatever the superblock says. Logs are not used. Not for writing. */
	BTRKIT_OPEN_TREE_ROOT = 1 << 3,
	/** The root of the chunk tree is at chunk_root, in a chunk that the superblock has. Not for writing. */
	BTRKIT_OPEN_CHUNK_ROOT = 1 << 4,
	/**
	 * Open although chunks and devices cannot be read, or only some of them, or a conversion was left half done,
	 * which a note tells: for who shows what there is, such as btrkit_dump_tree(), which tells of it. Others fail
	 * where they need what is missing. Not for writing.
	 */
	BTRKIT_OPEN_PARTIAL = 1 << 5
};

/** A copy that was tried, or what was rebuilt from parity. Since: 0.1 */
struct btrkit_tried_copy {
	unsigned mirror;	/**< copies count from 1, as in Linux; 0: what parity gives */
	/** Where the copy lies; both are 0 of what parity gives. A strip that parity shows to be bad has no mirror. */
	uint64_t devid, physical;
	int err;		/**< 0: it serves; else the negative errno for which it was passed over */
	const char *why;	/**< in words; empty where it serves */
};

/** A read of which a copy was passed over. Since: 0.1 */
struct btrkit_repair {
	uint64_t logical, length;
	bool served;		/**< another copy had it; the bytes on the devices stay as they are */
	unsigned num_copies;
	/** As they were tried, the one that serves last. Of several ways to rebuild that fail, only the first. */
	const struct btrkit_tried_copy *copies;
};

/**
 * Is told of a read of which a copy was passed over, unless that is for a device that is missing or was left behind by
 * the others, which is noted when the filesystem is opened. It is called while the read goes on, by its thread, so by
 * several at once where several read. What it is given is valid during the call only.
 *
 * Since: 0.1
 */
typedef void (*btrkit_repair_fn)(void *ctx, const struct btrkit_repair *repair);

/**
 * How to open. Initialise with BTRKIT_OPEN_OPTIONS_INIT.
 *
 * Since: 0.1
 */
struct btrkit_open_options {
	unsigned flags;			/**< BTRKIT_OPEN_*; unknown ones are refused */
	unsigned super_mirror;		/**< 0, 1 or 2 */
	size_t cache_bytes;		/**< budget of the cache of tree blocks; 0: 64 MiB */
	btrkit_note_fn note;		/**< may be NULL */
	void *note_ctx;
	btrkit_repair_fn repair;	/**< may be NULL */
	void *repair_ctx;
	unsigned backup;		/**< 0 to 3 */
	uint64_t tree_root;		/**< logical addresses */
	uint64_t chunk_root;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_OPEN_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Opens a filesystem, for reading unless BTRKIT_OPEN_WRITE is among the flags.
 *
 * Devices that do not belong together are refused with their names: of different filesystems, two that are one device
 * (the same, or a copy), one in the place of another, an unfinished change of the fsid. The seeds that a filesystem
 * grew out of are opened with it where they are given. Missing devices, missing seeds, stale devices and those that
 * were removed from the filesystem are noted. Of several the newest superblock is the filesystem's.
 *
 * The primary superblock is used whenever it is valid; a mirror only when it is not, which is noted. A mirror that is
 * newer than a valid primary is noted and not used. Of several devices the one with the highest generation speaks for
 * the filesystem; one with an older generation is noted, and read only where no other has the bytes, unless a checksum
 * or a generation can tell that they are right.
 *
 * Of a filesystem that lacks devices everything is read that the others have; which devices are missing, and which
 * chunks cannot be read without them, is noted.
 *
 * @param devices	its devices, in any order; on success the handle owns them, on failure they stay the caller's
 * @param n		how many
 * @param opts		may be NULL
 * @return 0; -EMEDIUMTYPE: not a btrfs filesystem; -EOPNOTSUPP: a feature that is not read, or not written, named in
 *	   the message; -ENOENT: a slot without backup roots; -EROFS: a device that cannot be written;
 *	   -EUCLEAN, -EIO, -ENODATA, -ENOMEM; -EINVAL for bad options
 * Since: 0.1
 */
int btrkit_fs_open(struct btrkit_io *const *devices, size_t n, const struct btrkit_open_options *opts,
		   struct btrkit_fs **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Where btrkit_fs_scan() looks. Since: 0.1 */
enum btrkit_scan_source {
	/** What the kernel lists of a mounted filesystem with that fsid, its seeds included; these go before others. */
	BTRKIT_SCAN_MOUNTED = 1 << 0,
	/** What libblkid has in its cache, which is not changed. */
	BTRKIT_SCAN_CACHE = 1 << 1,
	/** The superblocks of all block devices, but for those that another block device is made of. */
	BTRKIT_SCAN_DEVICES = 1 << 2,
	BTRKIT_SCAN_ALL = BTRKIT_SCAN_MOUNTED | BTRKIT_SCAN_CACHE | BTRKIT_SCAN_DEVICES
};

/**
 * Looks among this machine's block devices for the devices of a filesystem of which only @p devices are given; finds
 * none when these are as many as the superblock of the first counts. btrkit_fs_open() itself looks for none. Image
 * files are never guessed. Devices that cannot be read are passed over; whatever a source says, a device is taken only
 * for what its superblock says.
 *
 * @param sources	BTRKIT_SCAN_*; others are refused
 * @param found	room for @p max devices, opened for reading; those found are the caller's to close, or to open the
 *		filesystem with. Their names say where they are
 * @param count	how many were found, which may be fewer than are missing
 * @param n	how many are given
 * @return 0; -EINVAL: there are two that pass for one device, such as a copy, one of which may be given, with both
 *	   names; or why the superblock of the first device cannot be used, as btrkit_fs_open(); -ENOMEM
 * Since: 0.1
 */
int btrkit_fs_scan(struct btrkit_io *const *devices, size_t n, unsigned sources, struct btrkit_io **found, size_t max,
		   size_t *count, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Closes the filesystem and its devices. NULL is allowed. A transaction that is open is dropped, as by
 * btrkit_txn_abort(), and its handle freed. Files must have been closed before.
 *
 * @return NULL
 * Since: 0.1
 */
struct btrkit_fs *btrkit_fs_close(struct btrkit_fs *fs);

/** What a superblock says, in short. Since: 0.1 */
struct btrkit_fs_info {
	uint8_t fsid[16];
	char label[257];		/**< always terminated; bytes as on disk */
	uint64_t generation;
	uint64_t total_bytes;
	uint64_t bytes_used;
	uint64_t num_devices;
	uint32_t sectorsize;
	uint32_t nodesize;
	unsigned super_mirror;		/**< the copy that is used */
	const char *csum_name;		/**< a constant of the library */
	uint64_t log_root;		/**< where logs lie: fsyncs since the commit; or 0 */
	uint64_t reserved[7];	/**< 0 */
};

/** Fills in @p info. Since: 0.1 */
void btrkit_fs_get_info(const struct btrkit_fs *fs, struct btrkit_fs_info *info);

BTRKIT_END_DECLS

#endif
