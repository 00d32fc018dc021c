/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_CHECK_AUDIT_H
#define BTRKIT_CHECK_AUDIT_H

/*
 * Holds the structures of a filesystem against each other: every block of every tree, each item by the registry; the
 * references of the extent tree against those that the trees make, both ways and every form; block group and device
 * counters, chunks and device extents, what the superblock repeats of them; checksums against data extents; root items
 * against the trees; the cache of free space that Linux would trust, v2 or v1, against the extents. Reads only. A log
 * tree is passed over: the extent tree knows nothing of it.
 */

#include "lib/tree/filesystem.h"

struct audit_counts {
	uint64_t trees, blocks, items, extents, refs, groups, dev_extents, free_ranges;
	/* Whose root item says another number of bytes than its blocks take. Linux is off by a block at times. */
	uint64_t inexact_trees;
};

/* @return 0: all agrees; -EUCLEAN: the first contradiction; -EIO, -ENODATA, -ENOMEM */
int audit(struct btrkit_fs *fs, struct audit_counts *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Holds the backup roots of the current generation against the roots. Not of a filesystem that was copied while it was
 * mounted: there Linux lets the next transaction change roots before it writes down those of the last.
 * @return as audit()
 */
int audit_backups(struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
