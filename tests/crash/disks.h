/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_DISKS_H
#define BTRKIT_TESTS_CRASH_DISKS_H

/* The devices of one filesystem. Each keeps or loses unflushed writes independently of the others. */

#include "sparse.h"

#define DISKS_MAX 6u

struct disks {
	unsigned n;
	struct sparse *at[DISKS_MAX];
};

/* Wraps a single device. */
struct disks disks_one(struct sparse *s);
/* Creates overlay devices over @below, which is never changed and must outlive them. */
struct disks disks_over(const struct disks *below);
void disks_free(struct disks *d);

/* Hashes everything that differs from @base, see sparse_hash(). The same bytes on another device hash differently. */
uint64_t disks_hash(const struct disks *d, const struct disks *base);

/* Writes the devices to PATH.img, or to PATH-1.img and so on if there are several. */
void disks_export(const struct disks *d, const char *path);

#endif
