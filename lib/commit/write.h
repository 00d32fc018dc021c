/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_WRITE_H
#define BTRKIT_COMMIT_WRITE_H

/* Writes the blocks of a transaction. */

#include "lib/commit/txn.h"

/* Seals every private block, writes all its copies, and flushes the devices. */
int commit_write_blocks(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Flushes every device. */
int commit_flush(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Writes full leaves if blocks use much memory; nothing on the devices refers to them before the commit. The trees must
 * be locked, and only cursors of edits may point into them.
 * @return 0; -EBUSY: as txn_write_data(); <0: the transaction can only be aborted
 */
int txn_write_early(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
