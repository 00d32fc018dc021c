/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_PLANTED_H
#define BTRKIT_TESTS_CRASH_PLANTED_H

/* What functions that replace those of the library know of the defect that is planted. */

#include <stdbool.h>

#define WRAPPED(ret, name, ...)         \
	ret __real_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__); \
	ret __wrap_##name(__VA_ARGS__)

/* Its number; -1: none. */
extern int planted_now;
/* That of freed space which is used again in the same transaction: the program says it. */
extern const int planted_reuse;

void planted_begin(int number);
/* A commit begins. */
void planted_commit(void);
/* Whether the mistake was made. */
bool planted_seen(void);
/* Whether it is made here: at this occasion, from 1, or at every one (0). */
bool planted_wrong(int defect, unsigned at);

#endif
