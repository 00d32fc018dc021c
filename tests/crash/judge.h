/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_JUDGE_H
#define BTRKIT_TESTS_CRASH_JUDGE_H

/*
 * Whether a state that a device may be left in is one that it may be left in: each superblock is either no valid one,
 * or that of a whole filesystem, which is the one before or the one that was being made.
 */

#include "sparse.h"

enum { HOLDS_NOTHING, HOLDS_OLD, HOLDS_NEW };

struct judge {
	struct sparse *before, *after;	/* the device as it was, and when all is done */
	char *old_text, *new_text;	/* dumps of all trees; old_text is NULL where there was no filesystem */
};

/* Ends the program if @after holds no filesystem. */
struct judge judge_create(struct sparse *before, struct sparse *after);
void judge_release(struct judge *j);

/*
 * @why: filled in when it is not, 300 bytes
 * @return HOLDS_* as a tool would see that looks for any superblock, or -1
 */
int judge_state(const struct judge *j, struct sparse *state, char *why);

#endif
