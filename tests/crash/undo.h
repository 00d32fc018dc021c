/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_UNDO_H
#define BTRKIT_TESTS_CRASH_UNDO_H

/*
 * The states that power failures leave a device and its undo file in, with one order of all that reaches the two: while
 * the device is written to, and while that is undone.
 */

#include "log.h"

/* In the offset of an event of the undo file. */
#define IN_FILE (1ull << 62)

struct trial {
	const char *name;
	struct sparse *before, *device, *file;
	struct log log;		/* of both, while the device was written to */
	bool planted;		/* bad states are what is wanted */
	struct hash_set *seen;	/* states are counted once */
	uint64_t states, unfinished, bad;
};

/* What an undo may be started from. */
struct start {
	struct sparse *device, *file;
	uint64_t file_size;
};

/* The device over an undo file, both recorded. */
struct btrkit_io *trial_io(struct trial *t, struct sparse *before);
void trial_release(struct trial *t);

/* Each state that the writer may leave is put back to what was before. */
void judge_writing(struct trial *t);
/* Each state that an undo may leave is a whole one or refused by name, and undone by another one. @again: that too. */
void judge_undoing(struct trial *t, const struct start *start, void (*plant)(struct log *), bool again);

/* What there is after the first @n events of the writer, to start from. */
struct start start_at(struct trial *t, size_t n);
void start_release(struct start *s);

#endif
