/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_UNDO_H
#define BTRKIT_TESTS_CRASH_UNDO_H

/*
 * The states that power failures can leave on devices and their undo file, from one log of everything that reaches
 * them: while the devices are written to, and while that is undone.
 */

#include "log.h"

#define DEVICES 2	/* maximum */

/* Tags in event offsets: the undo file, or device number @i. */
#define IN_FILE (1ull << 62)
#define ON_DEVICE(i) ((uint64_t)(i) << 56)

/* The devices and the undo file. */
struct start {
	struct sparse *device[DEVICES], *file;
	uint64_t file_size;
};

struct trial {
	const char *name;
	size_t devices;
	struct sparse *before[DEVICES];
	struct start now;
	struct log log;		/* events while the devices were written to */
	bool planted;		/* a defect is planted: bad states are expected */
	struct hash_set *seen;	/* to count each state once */
	uint64_t states, unfinished, bad;
	uint64_t alike;		/* states in which the devices could not be told apart */
};

/* Opens the devices for writing with an undo file, recording all of them. @before: t->devices entries. */
void trial_start(struct trial *t, struct sparse *const *before, struct btrkit_io **ios);
void trial_release(struct trial *t);

/* Undo from each state that the writer can leave must restore the initial contents. */
void check_writing(struct trial *t);
/*
 * Each state that an interrupted undo can leave is intact or refused with a message, and can be undone again. @again:
 * interrupt the second undo too.
 */
void check_undoing(struct trial *t, const struct start *start, void (*plant)(struct log *), bool again);

/* The state after the first @n events of the writer. */
struct start start_at(struct trial *t, size_t n);
void start_release(const struct trial *t, struct start *s);

#endif
