/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_COMMIT_H
#define BTRKIT_TXN_COMMIT_H

/* The steps of a commit: see txn.h. */

#include "lib/txn/txn.h"

/* commit.c: the trees say how everything is, and nothing is pending. */
int commit_settle(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* write.c: every private block, sealed, on every copy of its place, and the devices flushed. */
int commit_write_blocks(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Flushes every device. */
int commit_flush(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* supers.c: the superblocks of all devices. */
struct commit_supers;
int commit_supers_make(struct btrkit_txn *txn, struct commit_supers **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
struct commit_supers *commit_supers_free(struct commit_supers *s);
/* Room for all of them. */
int commit_supers_reserve(const struct commit_supers *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether each device still has the superblock that @fs goes by. @return 0; -EBUSY: no; -EIO */
int commit_supers_check(const struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Copy number @mirror on each device that has room for it. */
int commit_supers_write(struct btrkit_txn *txn, const struct commit_supers *s, unsigned mirror,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* A device's item as the chunk tree has it, and as its superblock is to have it. */
int commit_device_item(struct btrkit_fs *fs, uint64_t devid, struct disk_dev_item *ret,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Whether a device, by its item in the superblock, has room for a copy; and makes the superblock that copy. */
bool commit_super_has_copy(const struct disk_super *d, unsigned mirror);
void commit_super_make_copy(const struct btrkit_fs *fs, struct disk_super *d, unsigned mirror);
/* The filesystem's superblock as it is written. */
const struct super *commit_supers_decoded(const struct commit_supers *s);

/*
 * level.c: every mirror that is not the filesystem's, not of its generation, or not valid is written anew. Before
 * anything else is written through a handle. @return 0; as commit_supers_check(), and nothing is written; <0
 */
int commit_level_supers(struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
