/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_DEVICES_CHECK_H
#define BTRKIT_TESTS_CRASH_DEVICES_CHECK_H

/*
 * Decides whether a state of the devices after a power failure is permitted while devices join and leave.
 *
 * All devices that have a superblock, opened together, must be the complete filesystem of the newest of these. And if
 * every device of an earlier filesystem still has its superblock, these alone must be that filesystem, for somebody who
 * does not know of the new device.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "disks.h"

#define WHY_SIZE 600
#define COMMITS_MAX 8u

struct committed {
	unsigned members; /* bit mask of devices */
	uint64_t generation;
	uint64_t digest;
};

struct devices_check {
	uint8_t fsid[16];
	struct committed states[COMMITS_MAX];
	size_t n;
	uint64_t alone; /* times that the devices of an older filesystem were opened alone */
};

/* Adds a committed state, all of whose superblocks must be in order. @return whether they are; @why if not */
bool devices_check_add(struct devices_check *j, const struct disks *disks, unsigned members, char why[WHY_SIZE]);

/*
 * @durable: number of the committed state that must have been reached
 * @return the number of the committed state; -1: the state is not permitted, @why
 */
int devices_check_state(struct devices_check *j, const struct disks *state, size_t durable, char why[WHY_SIZE]);

/* Number of the newest committed state that a superblock of the device belongs to, or -1. Its primary counts first. */
int devices_claim(const struct devices_check *j, const struct disks *disks, unsigned device);

#endif
