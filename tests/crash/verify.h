/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_VERIFY_H
#define BTRKIT_TESTS_CRASH_VERIFY_H

/*
 * Decides whether the state of a device after a power failure is permitted: each superblock must be invalid, or belong
 * to a complete filesystem, either the previous one or the new one.
 */

#include "sparse.h"

enum { HOLDS_NOTHING, HOLDS_OLD, HOLDS_NEW };

struct check {
	struct sparse *before, *after;	/* the device before and after */
	char *old_text, *new_text;	/* dumps of all trees; old_text is NULL if there was no filesystem */
};

/* Exits if @after holds no filesystem. */
struct check check_create(struct sparse *before, struct sparse *after);
void check_release(struct check *j);

/*
 * @why: reason if the state is not permitted, 300 bytes
 * @return HOLDS_*: what a tool finds that tries all superblocks; -1: not permitted
 */
int check_state(const struct check *j, struct sparse *state, char *why);

#endif
