/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_SUPERS_H
#define BTRKIT_COMMIT_SUPERS_H

/* The superblocks of all devices, as a commit writes them. */

#include "lib/commit/txn.h"

struct commit_supers;
int commit_supers_make(struct btrkit_txn *txn, struct commit_supers **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct commit_supers *commit_supers_free(struct commit_supers *s);
/* Reserves space for all of them. */
int commit_supers_reserve(const struct commit_supers *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Check that each device still has the superblock that @fs is based on. @return 0; -EBUSY: no; -EIO */
int commit_supers_check(const struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Writes copy number @mirror to each device that has room for it. */
int commit_supers_write(struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Writes the primary superblocks of devices that join, and flushes all devices if there are any. To be called before
 * those of the others are written: until then, the filesystem is complete without the new devices, and afterwards it is
 * not. commit_supers_write() leaves these out.
 */
int commit_supers_join(struct btrkit_txn *txn, const struct commit_supers *s,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Clears the magic numbers of all superblocks of devices that leave, and flushes all devices if there are any. To be
 * called when the superblocks of the others are durable: until then, the filesystem may need these devices.
 */
int commit_supers_leave(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Reads a device's item from the chunk tree, as the superblock of the device has to contain it. */
int commit_device_item(struct btrkit_fs *fs, uint64_t devid, struct disk_dev_item *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether the device is large enough for a copy, by its item in the superblock. */
bool commit_super_has_copy(const struct disk_super *d, unsigned mirror);
/* Turns the superblock into that copy. */
void commit_super_make_copy(const struct btrkit_fs *fs, struct disk_super *d, unsigned mirror);
/* The filesystem's superblock as it is written, decoded. */
const struct super *commit_supers_decoded(const struct commit_supers *s);

#endif
