/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_DEFECTS_H
#define BTRKIT_TESTS_CRASH_TXN_DEFECTS_H

/*
 * Mistakes that a writer may make, planted one at a time: functions of the library that do something else, or a log of
 * writes that is another. The test has to see each.
 */

#include "log.h"

struct defect {
	const char *name;
	const char *kind; /* of the transactions in which it is planted */
	/*
	 * Changes a good log: what is written (@spoil), or in which order and whether it is (@doctor). @return false:
	 * there was no occasion. If both are NULL a function is replaced.
	 */
	bool (*spoil)(struct log *log, const struct disks *before);
	bool (*doctor)(struct log *log, const struct disks *before);
};

extern const struct defect defects[];
extern const unsigned num_defects;

/* -1: none. */
void defects_plant(int number);
/* A commit begins. */
void defects_commit(void);
/* Whether the replaced function had an occasion to be wrong. */
bool defects_planted(void);

#endif
