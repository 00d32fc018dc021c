/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_UNDO_H
#define BTRKIT_TESTS_CRASH_UNDO_H

/*
 * The states that power failures leave devices and their undo file in, with one order of all that reaches them: while
 * the devices are written to, and while that is undone.
 */

#include "log.h"

#define DEVICES 2	/* at the most */

/* In the offset of an event of the undo file, and of device number @i. */
#define IN_FILE (1ull << 62)
#define ON_DEVICE(i) ((uint64_t)(i) << 56)

/* The devices, and what is in the file. */
struct start {
	struct sparse *device[DEVICES], *file;
	uint64_t file_size;
};

struct trial {
	const char *name;
	size_t devices;
	struct sparse *before[DEVICES];
	struct start now;
	struct log log;		/* of all of them, while the devices were written to */
	bool planted;		/* bad states are what is wanted */
	struct hash_set *seen;	/* states are counted once */
	uint64_t states, unfinished, bad;
	uint64_t alike;		/* states in which the devices could not be told apart */
};

/* The devices over an undo file, all recorded. @before: as many as t->devices. */
void trial_start(struct trial *t, struct sparse *const *before, struct btrkit_io **ios);
void trial_release(struct trial *t);

/* Each state that the writer may leave is put back to what was before. */
void judge_writing(struct trial *t);
/* Each state that an undo may leave is a whole one or refused by name, and undone by another one. @again: that too. */
void judge_undoing(struct trial *t, const struct start *start, void (*plant)(struct log *), bool again);

/* What there is after the first @n events of the writer, to start from. */
struct start start_at(struct trial *t, size_t n);
void start_release(const struct trial *t, struct start *s);

#endif
