// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/unit/session.h"

struct btrkit_error err = BTRKIT_ERROR_INIT;
struct btrkit_txn *txn;
struct btrkit_fs *fs;
struct rig rig;

void session_begin(void)
{
	static const struct rig_kind kind = {
		"4k nodes", BTRKIT_PROFILE_SINGLE, BTRKIT_PROFILE_SINGLE, false, 4096, 0, 1, { 220 }
	};

	rig_make(&rig, &kind);
	fs = rig_open(&rig, BTRKIT_OPEN_WRITE, 0);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

void session_commit(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	rig_verify(&rig);
	rig_check(btrkit_txn_start(fs, &txn, &err), &err);
}

void session_end(void)
{
	rig_check(btrkit_txn_commit(txn, NULL, &err), &err);
	btrkit_fs_close(fs);
	rig_verify(&rig);
	rig_destroy(&rig);
}
