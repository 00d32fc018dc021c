/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_UNIT_SESSION_H
#define BTRKIT_TESTS_UNIT_SESSION_H

/* A small filesystem with nodes of 4 KiB, and a sequence of transactions on it. */

#include "tests/unit/unit.h"

#include "tests/unit/txn_rig.h"

#define TOP 256u

extern struct btrkit_error err;
extern struct btrkit_txn *txn; /* the open transaction */
extern struct btrkit_fs *fs;
extern struct rig rig;

void session_begin(void);
/* Commit, audit the result, and start the next transaction. */
void session_commit(void);
void session_end(void);

#endif
