/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_FILE_TREES_H
#define BTRKIT_TESTS_CRASH_FILE_TREES_H

/*
 * Whether the items in the trees of files agree with each other, by another way than check's: names, in each of the
 * three places where they are; links and sizes; an ORPHAN_ITEM for what has no name; file extents that do not overlap,
 * and what they come to; all data by its checksums.
 */

#include "lib/space/range.h"
#include "lib/tree/filesystem.h"

/* @return 0; -EUCLEAN: the first contradiction; <0 */
int file_trees_judge(struct btrkit_fs *fs, struct btrkit_error *err);

/* Space that is kept for files: nobody reads what is there, and some of it may be written before a commit. */
struct kept_space {
	struct range *kept, *used; /* used: by others of the same extents */
	size_t num_kept, num_used;
};

int kept_space_find(struct btrkit_fs *fs, struct kept_space *ret, struct btrkit_error *err);
bool kept_space_touches(const struct kept_space *k, uint64_t logical, uint64_t len);
/* Whether nobody reads what is there. */
bool kept_space_has(const struct kept_space *k, uint64_t logical, uint64_t len);
void kept_space_release(struct kept_space *k);

#endif
