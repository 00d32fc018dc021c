/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_JUDGE_USE_H
#define BTRKIT_TESTS_CHECK_JUDGE_USE_H

#define LOOP "/dev/loop0"
#define MNT "/mnt"

/*
 * Mounts what the loop device has, reads, writes, balances and removes all, and mounts it again. Of each step that
 * failed a line is told: "STEP name errno".
 */
void judge_use(void);

#endif
