/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DATA_H
#define BTRKIT_TESTS_CRASH_TXN_DATA_H

/* Adds and removes extents of files. */

#include "lib/commit/txn.h"

/* Finds the first file that has an extent, from inode number @from on. */
int data_find_file(struct btrkit_txn *txn, uint64_t root, uint64_t from, uint64_t *ret, struct btrkit_error *err);
/* Replaces extent number @nth of the file by a hole. */
int data_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err);
/* Preallocates space past the end of the file, at position @nth there. */
int data_preallocate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, uint64_t bytes,
		     struct btrkit_error *err);
/* Clones the file's first extent to the end of the file, at position @nth, and extends the file. */
int data_clone(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err);

#endif
