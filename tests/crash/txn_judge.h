/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_JUDGE_H
#define BTRKIT_TESTS_CRASH_TXN_JUDGE_H

/*
 * Whether a state that devices may be left in is one of the sequence of committed states, whole: each valid superblock
 * is one of theirs, all that it reaches is as it was committed (trees, each copy of a block, files' data), and the
 * audit finds nothing but other superblocks. The same with any devices removed that the filesystem can do without.
 */

#include <btrkit/error.h>

#include "lib/format/super.h"
#include "disks.h"
#include "tests/audit/audit.h"

#define WHY_SIZE 600

struct digest {
	uint64_t a, b;
};

/* A committed state. */
struct committed {
	struct disks disks;
	uint64_t generation;
	struct digest all; /* superblock, trees, data */
	uint64_t inexact;  /* trees: see audit_root_bytes() */
};

struct verdict;

struct txn_judge {
	unsigned spare; /* so many devices may be missing */
	bool files;	/* the trees of files are judged too, and what is kept for files may have been written */
	bool behind;	/* before the first commit not all superblocks were the newest */
	struct committed *states;
	size_t n;
	struct verdict *verdicts; /* by the bytes that they rest on */
	uint64_t judged;	  /* times that everything was read */
	uint64_t removed;	  /* times that devices were removed and what was left was judged */
};

void txn_judge_release(struct txn_judge *j);

/* Adds the next committed state; @disks become the judge's. @return whether it is whole; @why if not */
bool txn_judge_add(struct txn_judge *j, struct disks disks, char why[WHY_SIZE]);

/*
 * @floor: so many commits were durable: the state is that one, or the next.
 * @torn: set to whether the primary superblock of a device is not valid
 * @return the number of the committed state that it is; -1 and @why
 */
int txn_judge_state(struct txn_judge *j, const struct disks *state, size_t floor, bool *torn, char why[WHY_SIZE]);

/*
 * Whether the devices are a whole filesystem, whichever, with any devices removed that it can do without; @generation
 * (may be NULL) gets the superblock's; @known: AUDIT_*; @why if not.
 */
bool txn_judge_whole(struct txn_judge *j, const struct disks *disks, unsigned known, uint64_t *generation,
		     char why[WHY_SIZE]);

/* How many superblocks the device has. */
unsigned supers_of(struct sparse *device);

#endif
