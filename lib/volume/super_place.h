/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_VOLUME_SUPER_PLACE_H
#define BTRKIT_VOLUME_SUPER_PLACE_H

/*
 * Where a superblock lies on its device. That is its nominal place, super_offset(), which it names itself, but on zoned
 * devices, where nothing is written twice: there each copy has a log of two zones, filled in turn by one superblock
 * after the other, of which the newest counts. What is only an emulation of a zoned device, such as a file, keeps
 * superblocks in their nominal places.
 */

#include <btrkit/error.h>
#include <btrkit/io.h>

#include "lib/format/super.h"

#define SUPER_LOG_ZONES 2

/* Reads what lies at @at of the device. @return 0 or a negative errno, which the caller gets */
typedef int (*super_log_read_fn)(void *ctx, uint64_t at, struct disk_super *ret, struct btrkit_error *err);

/*
 * The newest superblock of a log, by what the device tells of its zones; @read is asked only if both are full.
 * @return 0; 1: none was written; -EUCLEAN: zones that no log leaves behind; what @read says
 */
int super_log_newest(const struct btrkit_zone zones[SUPER_LOG_ZONES], super_log_read_fn read, void *ctx, uint64_t *ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Where the log of copy @mirror begins. */
uint64_t super_log_offset(unsigned mirror);

/* @return 0; 1: the device is zoned and ends before it has that copy; <0 */
int super_place(struct btrkit_io *io, unsigned mirror, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Reads copy @mirror as it is; *at says where it lay, which tells the user more than its nominal place.
 * @return 0; -ENODATA: the device ends before; <0
 */
int super_read(struct btrkit_io *io, unsigned mirror, struct disk_super *ret, uint64_t *at,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
