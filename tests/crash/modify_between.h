/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_BETWEEN_H
#define BTRKIT_TESTS_CRASH_MODIFY_BETWEEN_H

/*
 * Commits where reclaim could: before every @n-th space reservation (large operations make several). 0: never. For a
 * single thread only.
 */
void between_commit_every(unsigned n);

#endif
