/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_LARGE_H
#define BTRKIT_TESTS_CRASH_MODIFY_LARGE_H

/* Operations that are split into several steps with a commit after each. */

#include <btrkit/btrkit.h>

int prepare_large(struct btrkit_fs *fs, struct btrkit_error *err);
/* Large files are removed, by unlink and by a rename over them. */
int large_files(struct btrkit_fs *fs, struct btrkit_error *err);
/* Large files are truncated, punched and rewritten. */
int large_truncates(struct btrkit_fs *fs, struct btrkit_error *err);
int deletion_in_steps(struct btrkit_fs *fs, struct btrkit_error *err);


/* Data or metadata space is short, so that reclaim commits. */
int prepare_full(struct btrkit_fs *fs, struct btrkit_error *err);
int full_of_data(struct btrkit_fs *fs, struct btrkit_error *err);
int prepare_full_trees(struct btrkit_fs *fs, struct btrkit_error *err);
int full_of_trees(struct btrkit_fs *fs, struct btrkit_error *err);
int go_on_full(struct btrkit_fs *fs, struct btrkit_error *err);

/* Defined in modify_kinds.c. */
int prepare(struct btrkit_fs *fs, struct btrkit_error *err);
int go_on(struct btrkit_fs *fs, struct btrkit_error *err);
/* Also completes the deletion of subvolumes that was interrupted. */
int go_on_cleaning(struct btrkit_fs *fs, struct btrkit_error *err);

#endif
