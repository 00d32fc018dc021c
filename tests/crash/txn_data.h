/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DATA_H
#define BTRKIT_TESTS_CRASH_TXN_DATA_H

/* Extents of files come and go. */

#include "lib/txn/txn.h"

/* The first file that has an extent, from inode number @from on. */
int data_find_file(struct btrkit_txn *txn, uint64_t root, uint64_t from, uint64_t *ret, struct btrkit_error *err);
/* Takes an extent, number @nth of the file, out of it: a hole. */
int data_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err);
/* Space behind the end of the file, in the place @nth there. */
int data_preallocate(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, uint64_t bytes,
		     struct btrkit_error *err);
/* The file's first extent again, behind all others, in the place @nth there; the file ends there then. */
int data_clone(struct btrkit_txn *txn, uint64_t root, uint64_t inode, unsigned nth, struct btrkit_error *err);

#endif
