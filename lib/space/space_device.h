/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_SPACE_DEVICE_H
#define BTRKIT_SPACE_SPACE_DEVICE_H

/*
 * Devices that join, leave or change their size in a transaction: the device item, the superblock's number of devices
 * and total size, the error counters, and the devices of the open volume. An abort takes all of it back.
 *
 * These functions edit the chunk tree, so the caller reserves space for that, as for a chunk: txn_add_device() etc. do.
 * They may not be called during an edit, nor while other threads read or write the filesystem, which is also true for
 * the end of the transaction.
 *
 * What fails before the first edit, also because of a damaged item, has changed nothing. A later failure is recorded in
 * the transaction, which can then only be aborted.
 *
 * @super is the superblock that the commit will write.
 */

#include "lib/space/space.h"

/*
 * Adds a device: chunks can be placed on it at once, in the same transaction. Its old contents are lost with the
 * commit, before which only new extents are written to it; whoever calls this has removed signatures of other
 * filesystems and partition tables. It gets the next free device ID. Only one device can join in a transaction: the
 * superblocks of two cannot be written at once, and after a crash in between, all devices that have one would be the
 * new filesystem without the other.
 *
 * @uuid: its UUID, which no other device has; @devid: set to its ID. On success the volume owns @io, and closes it
 * after an abort.
 * @return 0; -EINVAL: too small, its UUID is taken, it belongs to the filesystem already, or there are too many;
 * -EROFS: it cannot be written; -EOPNOTSUPP: a zoned device; -EBUSY: no transaction is open, or it has added a device
 * already; <0. On failure @io is still the caller's.
 */
int space_device_add(struct space *s, struct btrkit_io *io, const uint8_t uuid[16], struct disk_super *super,
		     uint64_t *devid, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes a device that has no chunks any more, except those that this transaction has removed. It is closed when the
 * commit is durable and has cleared its superblocks; before that they are as they were.
 * @return 0; -EINVAL: there is no such device, or it has just been added; -EBUSY: it has chunks, or is the last; <0
 */
int space_device_remove(struct space *s, uint64_t devid, struct disk_super *super,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Changes the part of a device that the filesystem uses to @total bytes, rounded down to whole sectors. After the
 * commit of a smaller size, what is behind it may be cut off.
 * @return 0; -EINVAL: no such device, or it is not that large; -EBUSY: a chunk ends after that; <0
 */
int space_device_resize(struct space *s, uint64_t devid, uint64_t total, struct disk_super *super,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Says whether chunks may be placed on a device, which is so at first. Together with space_inc_ro() for the groups that
 * have stripes there it keeps a device empty while relocation empties it. A state of the handle, like that.
 * @return 0; -EINVAL: there is no such device
 */
int space_device_take_chunks(struct space *s, uint64_t devid, bool take, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The transaction is durable, or was aborted. Called by space_committed() and space_aborted(), after their changes. */
void space_devices_committed(struct space *s);
void space_devices_aborted(struct space *s);

#endif
