/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_BETWEEN_H
#define BTRKIT_TESTS_CRASH_MODIFY_BETWEEN_H

/*
 * Commits where reclaim may have them: before every so many of the reservations that operations make, of which one that
 * has much to do makes several. By one thread only. 0: none.
 */
void between_commit_every(unsigned n);

#endif
