/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_HURRY_H
#define BTRKIT_TESTS_HURRY_H

#include "lib/commit/txn.h"
#include "lib/delayed/delayed.h"

/* Makes a transaction insert its delayed items and write full leaves far earlier than usual. */
static inline void txn_hurry(struct btrkit_txn *txn)
{
	txn->early_bytes = 0;
	txn->delayed->waiting_max = 4096;
}

#endif
