/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_UNDO_H
#define BTRKIT_UNDO_H

/**
 * @file
 * Undo files, which save what a program overwrites, so that it can be restored.
 *
 * btrkit_io_undo() puts an undo file over devices, which any function of this library can then write to as before. The
 * old contents of each block are durable in the undo file before the block is overwritten. btrkit_undo() restores them
 * byte for byte, whether the program succeeded, failed, was killed or lost power.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/**
 * Wraps devices, and saves in a new undo file whatever is overwritten on any of them.
 *
 * Writes to a device are collected, and reach it when enough of them are pending, or when it is flushed or closed. A
 * later call may therefore report the failure. After a failure of the undo file nothing more is written to any device.
 * After a failure of a device nothing more is written to that one, since collected writes were lost: all later writes
 * and flushes fail with the first error. Discards are ignored, because the discarded contents would be lost.
 * btrkit_io_reserve() announces writes: the contents of the range are saved at once. The file is completed when the
 * last device is closed.
 *
 * @param below	devices, opened for writing; owned by the wrappers on success, and closed with them
 * @param n	number of devices, up to 1024
 * @param file	path of the undo file, which must not exist; removed when the last device is closed if nothing was
 *		written
 * @param flags	must be 0
 * @param ret	array of @p n elements; receives a wrapper for each device; may be @p below
 * @return 0; on failure all of @p below remain the caller's, and no file is left: -EEXIST; -EINVAL: unknown flags, a
 *	   device that cannot be written, or one that contains the file; -ENOSPC, -EIO, -ENOMEM, and other errors of the
 *	   operating system
 * Since: 0.1
 */
int btrkit_io_undo(struct btrkit_io *const *below, size_t n, const char *file, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_undo_options. Since: 0.1 */
enum btrkit_undo_flags {
	/**
	 * The devices are in the order in which btrkit_io_undo() got them. Without this flag each device is identified
	 * by its contents. If too little was written to tell devices apart, btrkit_undo() refuses them.
	 */
	BTRKIT_UNDO_ORDERED = 1 << 0
};

/** Options of btrkit_undo(). Initialise with BTRKIT_UNDO_OPTIONS_INIT. Since: 0.1 */
struct btrkit_undo_options {
	unsigned flags;		/**< enum btrkit_undo_flags; unknown ones are refused */
	/**
	 * Reports progress in bytes. A value other than 0, a negative errno, stops the work, and leaves an unfinished
	 * undo if writing has begun. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_UNDO_OPTIONS_INIT BTRKIT_ZEROS

/** What btrkit_undo() did. Since: 0.1 */
struct btrkit_undo_result {
	uint64_t saved;		/**< bytes of the devices that the file has saved */
	uint64_t restored;	/**< of these, bytes written now; 0: the devices had their old contents */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Restores the contents that devices had when the undo file was created.
 *
 * First the devices are compared with the file. Each sector must be as it was before, or as the program that made the
 * file wrote it. If any sector differs, or if the size of a device does, the device has changed since, and nothing is
 * written. Of space that a transaction freed, and that Linux may have discarded since, the file covers all tree blocks
 * and part of the data.
 *
 * Then the superblocks are replaced by marks, for which every function of this library refuses the device ("an undo is
 * unfinished"). They are restored when everything else is durable, the primary one last. With several devices, each
 * step is completed on all of them before the next one begins. If the undo is interrupted, call it again. A device that
 * already has its old contents is not written.
 *
 * @param file	path of the undo file, which is not changed
 * @param devices	all devices that it was made for, in any order (see BTRKIT_UNDO_ORDERED), opened for writing;
 *		they remain the caller's
 * @param n	number of devices
 * @param result	receives what was done; may be NULL
 * @return 0; -EINVAL: not an undo file, or a device does not belong to it, has another size, or has changed since, with
 *	   the address; -EUCLEAN: the undo file is corrupt; -EOPNOTSUPP; -EIO, -ENOMEM; or what the progress callback
 *	   returned
 * Since: 0.1
 */
int btrkit_undo(const char *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
		struct btrkit_undo_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
