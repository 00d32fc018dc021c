/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_SUPER_PLACE_H
#define BTRKIT_VOLUME_SUPER_PLACE_H

/*
 * Location of superblocks on a device. Normally this is the nominal offset, super_offset(), which is also stored in the
 * superblock. Zoned devices cannot overwrite blocks in place, so each copy has a log of two zones instead, to which
 * superblocks are appended in turn; the newest one is valid. An emulated zoned filesystem, for example in a file, has
 * superblocks at their nominal offsets.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/format/super.h"

#define SUPER_LOG_ZONES 2

/* Reads the superblock at @at. @return 0 or a negative errno, which is passed on to the caller */
typedef int (*super_log_read_fn)(void *ctx, uint64_t at, struct disk_super *ret, struct btrkit_error *err);

/*
 * Finds the newest superblock of a log from the state of its zones. @read is only called if both are full.
 * @return 0; 1: no superblock was written; -EUCLEAN: invalid state of the zones; error of @read
 */
int super_log_newest(const struct btrkit_zone zones[SUPER_LOG_ZONES], super_log_read_fn read, void *ctx, uint64_t *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Start of the log of copy @mirror. */
uint64_t super_log_offset(unsigned mirror);

/* @return 0; 1: the zoned device is too small for that copy; <0 */
int super_place(struct btrkit_io *io, unsigned mirror, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Reads copy @mirror without validating it. *at is set to its actual location, for messages.
 * @return 0; -ENXIO: the device is too small; <0
 */
int super_read(struct btrkit_io *io, unsigned mirror, struct disk_super *ret, uint64_t *at,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
