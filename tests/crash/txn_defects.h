/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DEFECTS_H
#define BTRKIT_TESTS_CRASH_TXN_DEFECTS_H

/*
 * Defects that a writer could have, planted one at a time: a wrapped library function misbehaves, or the write log is
 * altered. The test must detect each of them.
 */

#include "log.h"

struct defect {
	const char *name;
	const char *kind; /* kind of transactions in which it is planted */
	/*
	 * Alter a good log: the written bytes (@spoil), or order and presence of the writes (@doctor). Return false if
	 * there was no occasion. If both are NULL, a function is wrapped.
	 */
	bool (*spoil)(struct log *log, const struct disks *before);
	bool (*doctor)(struct log *log, const struct disks *before);
};

extern const struct defect defects[];
extern const unsigned num_defects;

/* -1: none. */
void defects_plant(int number);
/* Called when a commit begins. */
void defects_commit(void);
/* Whether the wrapped function had an occasion to misbehave. */
bool defects_planted(void);

#endif
