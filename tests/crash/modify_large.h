/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_LARGE_H
#define BTRKIT_TESTS_CRASH_MODIFY_LARGE_H

/* What is done in steps, with a commit after each. */

#include <btrkit/btrkit.h>

int prepare_large(struct btrkit_fs *fs, struct btrkit_error *err);
/* They are removed, by name and by another that takes it. */
int large_files(struct btrkit_fs *fs, struct btrkit_error *err);
/* Truncated, punched, and written again. */
int large_truncates(struct btrkit_fs *fs, struct btrkit_error *err);
int deletion_in_steps(struct btrkit_fs *fs, struct btrkit_error *err);


/* Space is short: of data, and of trees too. Reclaim commits. */
int prepare_full(struct btrkit_fs *fs, struct btrkit_error *err);
int full_of_data(struct btrkit_fs *fs, struct btrkit_error *err);
int prepare_full_trees(struct btrkit_fs *fs, struct btrkit_error *err);
int full_of_trees(struct btrkit_fs *fs, struct btrkit_error *err);
int go_on_full(struct btrkit_fs *fs, struct btrkit_error *err);

/* Of modify_kinds.c. */
int prepare(struct btrkit_fs *fs, struct btrkit_error *err);
int go_on(struct btrkit_fs *fs, struct btrkit_error *err);
/* What is left of subvolumes that were deleted goes too. */
int go_on_cleaning(struct btrkit_fs *fs, struct btrkit_error *err);

#endif
