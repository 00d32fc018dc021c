/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_STATES_H
#define BTRKIT_TESTS_CRASH_STATES_H

/*
 * The states that a device may be left in when power fails: all prefixes of what reached it; of each stretch between
 * two flushes random subsets in random orders, with sectors of 512 and 4096 bytes missing from them; of each superblock
 * that is written each subset of its sectors.
 */

#include "log.h"

struct states {
	const struct log *log;
	struct sparse *before; /* the device before the log */
	unsigned seeds;	       /* random subsets of each stretch, of each of three kinds */
	unsigned torn_step;    /* of the subsets of a superblock's sectors every so many */
	/* @at: the event before which power failed, of what was flushed all is there */
	void (*look)(void *ctx, struct sparse *state, const char *what, size_t at);
	void *ctx;
};

void states_enumerate(const struct states *s);

/* xorshift64*: the same states on every machine. */
void states_seed(uint64_t seed);

#endif
