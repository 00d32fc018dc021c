/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_DATA_H
#define BTRKIT_COMMIT_DATA_H

/* File data of a transaction. */

#include "lib/commit/txn.h"

/* Data to be written by the commit. */
struct txn_data {
	struct txn_data *next;
	uint64_t logical;
	size_t length;
	uint8_t bytes[];
};

void txn_data_free(struct btrkit_txn *txn);

/*
 * Writes data to space that txn_alloc_data() returned in this transaction. In chunks with parity the commit writes it;
 * until then the data is kept in memory, and included in txn_bytes(). Nothing is written if a superblock is no longer
 * that of the last commit.
 * @return 0; -EBUSY: another program has written to the filesystem; <0: the caller must not refer to the data
 */
int txn_write_data(struct btrkit_txn *txn, uint64_t logical, const void *data, size_t len,
		   struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads data that was written in this transaction and is still kept in memory: fs->unwritten. */
bool txn_read_unwritten(const struct btrkit_fs *fs, uint64_t logical, void *buf, size_t *len);

#endif
