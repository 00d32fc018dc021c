/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_CHECK_H
#define BTRKIT_TESTS_CRASH_TXN_CHECK_H

/*
 * Decides whether a state of the devices is one of the committed states, complete: each valid superblock belongs to one
 * of them, everything reachable from it is as committed (trees, each copy of a block, file data), and the audit finds
 * nothing except differing superblocks. The same must hold with any devices removed that the filesystem can do without.
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
	struct digest all; /* digest of superblock, trees and data */
	uint64_t inexact;  /* trees: see audit_root_bytes() */
};

struct verdict;

struct txn_check {
	unsigned spare; /* number of devices that may be missing */
	bool files;	/* check the file trees too; preallocated space may have been written */
	bool behind;	/* before the first commit, some superblocks were old */
	struct committed *states;
	size_t n;
	struct verdict *verdicts; /* results, by the pages that they depend on */
	uint64_t checked;	  /* how often everything was read */
	uint64_t removed;	  /* how often devices were removed and the rest checked */
};

void txn_check_release(struct txn_check *j);

/* Adds the next committed state and take over @disks. @return whether it is intact; @why if not */
bool txn_check_add(struct txn_check *j, struct disks disks, char why[WHY_SIZE]);

/*
 * @floor: number of durable commits; the state must be that one or the next.
 * @torn: set to whether a device has an invalid primary superblock
 * @return the number of the committed state; -1 and @why
 */
int txn_check_state(struct txn_check *j, const struct disks *state, size_t floor, bool *torn, char why[WHY_SIZE]);

/*
 * Whether the devices hold any intact filesystem, also with any devices removed that it can do without.
 * @known: AUDIT_*
 * @generation: may be NULL; set to the superblock's
 * @why: reason if not
 */
bool txn_check_whole(struct txn_check *j, const struct disks *disks, unsigned known, uint64_t *generation,
		     char why[WHY_SIZE]);

/* Number of superblocks that fit on the device. */
unsigned supers_of(struct sparse *device);

#endif
