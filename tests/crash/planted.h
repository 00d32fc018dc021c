/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_PLANTED_H
#define BTRKIT_TESTS_CRASH_PLANTED_H

/* State shared by the wrapped library functions: which defect is planted. */

#include <stdbool.h>

#define WRAPPED(ret, name, ...)         \
	ret __real_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__)

/* Number of the planted defect; -1: none. */
extern int planted_now;
/* Number of the defect that reuses freed space within the same transaction. Defined by each program. */
extern const int planted_reuse;

void planted_begin(int number);
/* Called when a commit begins. */
void planted_commit(void);
/* Whether the defect has been triggered. */
bool planted_seen(void);
/* Whether to misbehave here: at occasion number @at, counted from 1, or at every one (0). */
bool planted_wrong(int defect, unsigned at);

#endif
