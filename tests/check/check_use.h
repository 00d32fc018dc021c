/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_CHECK_USE_H
#define BTRKIT_TESTS_CHECK_CHECK_USE_H

#define LOOP "/dev/loop0"
#define MNT "/mnt"

/*
 * Mounts the loop device, read, write, balance and removes everything, and mounts it again. Prints a line "STEP name
 * errno" for each failed step.
 */
void check_use(void);

#endif
