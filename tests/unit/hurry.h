/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_HURRY_H
#define BTRKIT_TESTS_HURRY_H

#include "lib/txn/delayed.h"
#include "lib/txn/txn.h"

/* What waits goes into the trees, and full leaves are written, long before there is as much as that takes otherwise. */
static inline void txn_hurry(struct btrkit_txn *txn)
{
	txn->early_bytes = 0;
	txn->delayed->waiting_max = 4096;
}

#endif
