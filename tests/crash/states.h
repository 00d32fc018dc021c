/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_STATES_H
#define BTRKIT_TESTS_CRASH_STATES_H

/*
 * The states that devices may be left in when power fails. A flush of one device says nothing of the others. All
 * prefixes of what reached them; of what none of the flushes has made durable random subsets in random orders, with
 * sectors of 512 and 4096 bytes missing from them, and every subset where it is little; of each superblock that is
 * written each subset of its sectors.
 */

#include "log.h"

struct states {
	const struct log *log;
	const struct disks *before; /* the devices before the log */
	unsigned seeds;		    /* random subsets of each stretch, of each of three kinds */
	unsigned torn_step;	    /* of the subsets of a superblock's sectors every so many */
	/* @at: the event before which power failed, of what was flushed all is there */
	void (*look)(void *ctx, const struct disks *state, const char *what, size_t at);
	void *ctx;
};

void states_enumerate(const struct states *s);

/* xorshift64*: the same states on every machine. */
void states_seed(uint64_t seed);

#endif
