/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_KINDS_H
#define BTRKIT_TESTS_CRASH_TXN_KINDS_H

/* The kinds of transactions whose crash states are looked at. */

#include <btrkit/btrkit.h>

/* What mkfs makes. */
struct made {
	enum btrkit_profile data, metadata;
	unsigned devices;
	uint64_t size; /* of each device */
	uint32_t nodesize;
	bool no_group_tree; /* for which there has to be a free space tree */
	unsigned spare; /* so many devices may be missing and nothing is lost */
};

struct kind {
	const char *name;
	const char *image; /* that it begins with; NULL: what mkfs makes */
	/* Changes @fs, in one or more commits. */
	int (*work)(struct btrkit_fs *fs, struct btrkit_error *err);
	/* The same before, for a filesystem that is no image. May be NULL. */
	int (*prepare)(struct btrkit_fs *fs, struct btrkit_error *err);
	bool faults; /* calls fail in it in every run, and not only in the deep one */
	const struct made *made; /* without an image */
	bool behind; /* power failed once before: of the work's first commit the mirrors were not written */
	bool again; /* who is killed runs it again: that ends well in every state */
	/* Files are changed: who opens a state goes on with this. May be NULL. */
	int (*after)(struct btrkit_fs *fs, struct btrkit_error *err);
	bool deep; /* only in the deep run */
	bool threads; /* threads take turns as they like: what comes of it is another each time */
};

/* How many states are looked at. */
struct effort {
	unsigned seeds, torn_step; /* see states.h */
	unsigned again;		   /* one in so many distinct states is gone on with */
};
/* The last is for the sanitizers: what they would see in one state they see in another. */
enum { EFFORT_USUAL, EFFORT_DEEP, EFFORT_BRIEF };
extern const struct effort efforts[3];

extern const struct kind kinds[];
extern const unsigned num_kinds;

/* NULL if there is none of that name. */
const struct kind *kind_find(const char *name);

#endif
