/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CHECK_CHECK_USE_H
#define BTRKIT_TESTS_CHECK_CHECK_USE_H

#include <stdbool.h>

#define LOOP "/dev/loop0"
#define LOOPS "/dev/loop%u"
#define MNT "/mnt"

/*
 * Mounts the loop device, read, write, balance and removes everything, and mounts it again. Prints a line "STEP name
 * errno" for each failed step.
 */
void check_use(void);

/*
 * Reads all names, inodes, attributes and contents below MNT.
 *
 * @return the first errno; check_failed has all of them
 */
int check_read(void);
#define CHECK_ERRNOS 256
extern bool check_failed[CHECK_ERRNOS];

/* Makes small and large files, an attribute and a directory below MNT, and removes them all. @return the first errno */
int check_write(void);

/* Balances everything. @return the errno */
int check_move(void);

/* Removes everything, subvolumes too. @return the first errno */
int check_remove(void);

/* Whether the filesystem at MNT is mounted read-only, also because of an error. */
bool check_is_read_only(void);

/*
 * Mounts a device read-only or writable, reads everything, and in the latter case also writes, balances, removes
 * everything, and mounts it again. Prints a line "ANSWER what errno" for each failure, where "what" is mount, read,
 * write, remove, forced (which means read-only), umount or again.
 */
void check_answer(const char *device, bool writable);

#endif
