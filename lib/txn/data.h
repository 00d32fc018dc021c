/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TXN_DATA_H
#define BTRKIT_TXN_DATA_H

/* Shared by data.c and write.c. */

#include "lib/txn/txn.h"

/* Data to be written by the commit. */
struct txn_data {
	struct txn_data *next;
	uint64_t logical;
	size_t length;
	uint8_t bytes[];
};

void txn_data_free(struct btrkit_txn *txn);

#endif
