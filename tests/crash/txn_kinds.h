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
};

extern const struct kind kinds[];
extern const unsigned num_kinds;

/* NULL if there is none of that name. */
const struct kind *kind_find(const char *name);

#endif
