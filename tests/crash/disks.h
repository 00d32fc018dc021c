/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_DISKS_H
#define BTRKIT_TESTS_CRASH_DISKS_H

/* The devices of one filesystem, of which each keeps or loses what it was told on its own. */

#include "sparse.h"

#define DISKS_MAX 6u

struct disks {
	unsigned n;
	struct sparse *at[DISKS_MAX];
};

/* A filesystem on one device. */
struct disks disks_one(struct sparse *s);
/* As many devices of the same sizes over others, which they never change and which must outlive them. */
struct disks disks_over(const struct disks *below);
void disks_free(struct disks *d);

/* Of all that is different from @base: see sparse_hash(). The same bytes on another device are different ones. */
uint64_t disks_hash(const struct disks *d, const struct disks *base);

/* Into files named PATH.img, or PATH-1.img and so on. */
void disks_export(const struct disks *d, const char *path);

#endif
