/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_UNDO_H
#define BTRKIT_UNDO_H

/**
 * @file
 * Taking back what was written to a device.
 *
 * A device over which btrkit_io_undo() puts an undo file is written to as before, by whatever function of this library.
 * The contents that a block had are in the file, and on disk there, before the block is overwritten. btrkit_undo() puts
 * them back, byte for byte, after a run that ended well, one that failed, and one that was killed or lost its power.
 */

#include <btrkit/io.h>

BTRKIT_BEGIN_DECLS

/**
 * Wraps devices, which were opened for writing and which it owns from then on, and keeps in one new undo file what is
 * overwritten on any of them.
 *
 * Writes are gathered for each device, and reach it when enough of them are there, when it is flushed or closed; a
 * failure may therefore be told of by a later call. After a failure of the undo file nothing more is written to any;
 * after one of a device nothing more to that, since writes that were gathered for it are lost: each later write or
 * flush fails with the first failure.
 * Discards are left out, since nothing keeps what they drop. btrkit_io_reserve() is taken as the announcement of
 * writes: what is there is kept at once. The file is ended when the last of the devices is closed.
 *
 * @param below		the devices
 * @param n		how many, up to 1024
 * @param file	the path of the undo file; it must not exist. When nothing was written to the device it is removed again
 *		by btrkit_io_close()
 * @param flags	0; others are refused
 * @param ret		room for as many devices, which stand for those of @p below; may be @p below
 * @return 0; on failure all of @p below stay the caller's, and there is no file: -EEXIST; -EINVAL: a device cannot be
 *	   written to, or the file would lie on it; -ENOSPC, -EIO, -ENOMEM, and the like from the operating system
 * Since: 0.1
 */
int btrkit_io_undo(struct btrkit_io *const *below, size_t n, const char *file, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_undo_options. Since: 0.1 */
enum btrkit_undo_flags {
	/**
	 * The devices are in the order of the file, which is that of btrkit_io_undo(). Without it the file finds out
	 * which is which, by what is on them. That leaves doubt where next to nothing was written: then it refuses.
	 */
	BTRKIT_UNDO_ORDERED = 1 << 0
};

/**
 * How to undo. Initialise with BTRKIT_UNDO_OPTIONS_INIT.
 *
 * Since: 0.1
 */
struct btrkit_undo_options {
	unsigned flags;		/**< BTRKIT_UNDO_*; others are refused */
	/**
	 * Told how far it is, in bytes; a value other than 0, a negative errno, ends it, and leaves an unfinished undo
	 * if it has begun to write. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_UNDO_OPTIONS_INIT BTRKIT_ZEROS

/** What was undone. Since: 0.1 */
struct btrkit_undo_result {
	uint64_t saved;		/**< bytes of the device whose old contents the file has */
	uint64_t restored;	/**< of these, bytes that were put back now; 0: the device was as it had been */
	uint64_t reserved[4];	/**< 0 */
};

/**
 * Puts devices back to what they were when the undo file was made.
 *
 * First everything that the file tells of is compared: a sector has to be what it was, or what the run that made the
 * file wrote there; if it is anything else, or a device has another size, that device has changed since, and nothing
 * is written to any. Of what a transaction has freed, and Linux may have discarded since, the file tells all tree
 * blocks and a part of the data. Then the superblocks are replaced by marks, by which every function of this library
 * refuses the device ("an undo is unfinished") until they come back, when all else has reached the medium; the primary
 * one is the last. Of several devices all have come so far before the next step begins on any. When it ends before
 * that, it is to be called again. A device on which nothing differs is not written to.
 *
 * @param file		the undo file, which stays as it is
 * @param devices	all devices it was made for, in any order (see BTRKIT_UNDO_ORDERED), opened for writing; they
 *			stay the caller's
 * @param n		how many
 * @param opts		may be NULL
 * @param result	may be NULL
 * @return 0; -EINVAL: not an undo file, or a device is not of it, by its size, or has changed since, with the address;
 *	   -EUCLEAN: the undo file is damaged; -EOPNOTSUPP; -EIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_undo(const char *file, struct btrkit_io *const *devices, size_t n, const struct btrkit_undo_options *opts,
		struct btrkit_undo_result *result, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
