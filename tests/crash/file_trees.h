/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_FILE_TREES_H
#define BTRKIT_TESTS_CRASH_FILE_TREES_H

/*
 * Cross-check the items of the file trees by code that is independent of `btrkit check`: the three places that hold
 * each name, link counts and sizes, an ORPHAN_ITEM for each inode without a name, file extents that do not overlap and
 * add up to nbytes, and all data against its checksums.
 */

#include "lib/space/range.h"
#include "lib/tree/filesystem.h"

/* @return 0; -EUCLEAN: the first inconsistency; <0 */
int file_trees_check(struct btrkit_fs *fs, struct btrkit_error *err);

/* Preallocated space of files: its contents are never read, and some of it may be overwritten before a commit. */
struct kept_space {
	struct range *kept, *used; /* used: by other references to the same extents */
	size_t num_kept, num_used;
};

int kept_space_find(struct btrkit_fs *fs, struct kept_space *ret, struct btrkit_error *err);
bool kept_space_touches(const struct kept_space *k, uint64_t logical, uint64_t len);
/* Whether the range is preallocated and its contents are never read. */
bool kept_space_has(const struct kept_space *k, uint64_t logical, uint64_t len);
void kept_space_release(struct kept_space *k);

#endif
