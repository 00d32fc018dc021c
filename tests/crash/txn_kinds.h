/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_TXN_KINDS_H
#define BTRKIT_TESTS_CRASH_TXN_KINDS_H

/* The kinds of transactions whose crash states are looked at. */

#include <btrkit/btrkit.h>

struct kind {
	const char *name;
	const char *image; /* that it begins with; NULL: what mkfs makes on a device with room for three superblocks */
	/* Changes @fs, in one or more commits. */
	int (*work)(struct btrkit_fs *fs, struct btrkit_error *err);
	/* The same before, for a filesystem that is no image. May be NULL. */
	int (*prepare)(struct btrkit_fs *fs, struct btrkit_error *err);
	bool faults; /* calls fail in it in every run, and not only in the deep one */
	bool again; /* who is killed runs it again: that ends well in every state */
};

extern const struct kind kinds[];
extern const unsigned num_kinds;

/* NULL if there is none of that name. */
const struct kind *kind_find(const char *name);

#endif
