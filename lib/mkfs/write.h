/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_WRITE_H
#define BTRKIT_MKFS_WRITE_H

/* Writes the planned filesystem. */

#include "lib/mkfs/plan.h"

struct mkfs_writer;

/* Allocates all memory needed, before anything is written. @return 0 or -ENOMEM */
int mkfs_writer_create(const struct mkfs_plan *p, struct mkfs_writer **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct mkfs_writer *mkfs_writer_destroy(struct mkfs_writer *w);

/* Writes and flushes all trees with all copies and parity. */
int mkfs_write_trees(struct mkfs_writer *w, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In supers.c: */
/*
 * Writes the primary superblocks of all devices and, when these are durable, the mirrors. Removes them after a failure.
 */
int mkfs_write_supers(const struct mkfs_plan *p, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
