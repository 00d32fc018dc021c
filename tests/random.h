/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_RANDOM_H
#define BTRKIT_TESTS_RANDOM_H

/* Random numbers of the tests: equal on all machines for equal seeds, so that what failed can be run again. */

#include <stdint.h>

/* Returns the state that follows, from Knuth's MMIX. Its upper bits are the random ones. */
static inline uint64_t random_after(uint64_t state)
{
	return state * 6364136223846793005u + 1442695040888963407u;
}

static inline void random_step(uint64_t *state)
{
	*state = random_after(*state);
}

#endif
