/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_RESERVE_DEVICES_H
#define BTRKIT_RESERVE_DEVICES_H

/*
 * Devices that join, leave or change their size: as in space_device.h, but space for the changes is reserved first.
 *
 * The commit writes the superblock of a new device before those of the others, and clears those of one that leaves
 * after all others are durable. So the devices that the old or the new filesystem needs are complete whenever a crash
 * comes. What it may leave behind: a new device with the new superblock beside devices with the old one, which are the
 * old filesystem without it; or a device that has left, but has its last superblock still.
 */

#include "lib/commit/txn.h"

int txn_add_device(struct btrkit_txn *txn, struct btrkit_io *io, const uint8_t uuid[16], uint64_t *devid,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;
int txn_remove_device(struct btrkit_txn *txn, uint64_t devid, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int txn_resize_device(struct btrkit_txn *txn, uint64_t devid, uint64_t total,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
