/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_BASE_H
#define BTRKIT_TESTS_CRASH_TXN_BASE_H

/* What a kind of transactions begins with. */

#include "sparse.h"
#include "txn_kinds.h"

/* Among @images, which NULL ends, is the kind's. Ends the program if there is nothing to begin with. */
struct sparse *base_of(const struct kind *kind, char **images);

#endif
