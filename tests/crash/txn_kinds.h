/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_KINDS_H
#define BTRKIT_TESTS_CRASH_TXN_KINDS_H

/* The kinds of transactions whose crash states are examined. */

#include <btrkit/btrkit.h>

/* Parameters for mkfs. */
struct made {
	enum btrkit_profile data, metadata;
	unsigned devices;
	uint64_t size; /* of each device */
	uint32_t nodesize;
	bool no_group_tree; /* no block group tree, but the free space tree is required */
	unsigned spare; /* number of devices that may be missing without loss */
};

struct kind {
	const char *name;
	const char *image; /* image to start from; NULL: a new filesystem */
	/* Change @fs, in one or more commits. */
	int (*work)(struct btrkit_fs *fs, struct btrkit_error *err);
	/* Prepare a new filesystem, before the log starts. May be NULL. */
	int (*prepare)(struct btrkit_fs *fs, struct btrkit_error *err);
	bool faults; /* run it with failing calls in every run, not only in the deep one */
	const struct made *made; /* if there is no image */
	bool behind; /* after an earlier power failure: the first commit did not write the mirrors */
	bool again; /* running the work again must succeed from every state */
	/* For kinds that change files: how to continue from a state. May be NULL. */
	int (*after)(struct btrkit_fs *fs, struct btrkit_error *err);
	bool deep; /* only in the deep run */
	bool threads; /* uses threads, so each run gives different results */
};

/* How many states to examine. */
struct effort {
	unsigned seeds, torn_step; /* see states.h */
	unsigned again;		   /* continue from one in so many distinct states */
};
/* EFFORT_BRIEF is for runs with sanitizers, where many states exercise the same code. */
enum { EFFORT_USUAL, EFFORT_DEEP, EFFORT_BRIEF };
extern const struct effort efforts[3];

extern const struct kind kinds[];
extern const unsigned num_kinds;

/* @return NULL if there is no kind of that name */
const struct kind *kind_find(const char *name);

#endif
