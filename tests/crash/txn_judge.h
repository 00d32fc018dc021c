/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_JUDGE_H
#define BTRKIT_TESTS_CRASH_TXN_JUDGE_H

/*
 * Whether a state that a device may be left in is one of the sequence of committed states, whole: each valid superblock
 * is one of them, all that it reaches is as it was committed (trees, each copy of a block, files' data), and the audit
 * finds nothing.
 */

#include <btrkit/error.h>

#include "lib/check/audit.h"
#include "lib/format/super.h"
#include "sparse.h"

#define WHY_SIZE 600

struct digest {
	uint64_t a, b;
};

/* A committed state. */
struct committed {
	struct sparse *device;
	uint64_t generation;
	struct digest all; /* superblock, trees, data */
	struct audit_counts counts;
};

struct verdict;

struct txn_judge {
	struct committed *states;
	size_t n;
	struct verdict *verdicts; /* by the bytes that they rest on */
	uint64_t judged;	  /* times that everything was read */
};

void txn_judge_release(struct txn_judge *j);

/* Adds the next committed state; @device becomes the judge's. @return whether it is whole; @why if not */
bool txn_judge_add(struct txn_judge *j, struct sparse *device, char why[WHY_SIZE]);

/*
 * @floor: so many commits were durable: the state is that one, or the next.
 * @torn: set to whether the primary superblock is not valid
 * @return the number of the committed state that it is; -1 and @why
 */
int txn_judge_state(struct txn_judge *j, struct sparse *state, size_t floor, bool *torn, char why[WHY_SIZE]);

/* Whether the device is a whole filesystem, whichever; @generation (may be NULL) gets the superblock's; @why if not. */
bool txn_judge_whole(struct sparse *device, uint64_t *generation, char why[WHY_SIZE]);

/* How many superblocks the device has. */
unsigned supers_of(struct sparse *device);

#endif
