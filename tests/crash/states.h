/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_STATES_H
#define BTRKIT_TESTS_CRASH_STATES_H

/*
 * Enumerate the states that a power failure can leave on the devices. A flush of one device makes nothing durable on
 * the others. Covered are: all prefixes of the log; random subsets of the unflushed events in random order, also with
 * sectors of 512 and 4096 bytes missing, and all subsets if there are few events; and, for each superblock write, all
 * subsets of its sectors.
 */

#include "log.h"

struct states {
	const struct log *log;
	const struct disks *before; /* the devices before the logged events */
	unsigned seeds;		    /* random subsets per stretch, for each of three sector sizes */
	unsigned torn_step;	    /* try every N-th subset of a superblock's sectors */
	/* @at: the event before which power failed; everything flushed before it is there */
	void (*look)(void *ctx, const struct disks *state, const char *what, size_t at);
	void *ctx;
};

void states_enumerate(const struct states *s);

/* Seed of the xorshift64* generator, which gives the same states on every machine. */
void states_seed(uint64_t seed);

#endif
