/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_PLANS_H
#define BTRKIT_TESTS_CRASH_MODIFY_PLANS_H

/* Random sequences of operations of all kinds. */

#include <btrkit/btrkit.h>

#define KIB 1024u

/*
 * Works below the directories that prepare() in modify_kinds.c makes. Deterministic for each @seed. @between: see
 * between_commit_every().
 */
int plan_run(struct btrkit_fs *fs, unsigned seed, unsigned operations, unsigned between, struct btrkit_error *err);

/* All in one transaction, which continues after each commit. */
int plan_run_continued(struct btrkit_fs *fs, unsigned seed, unsigned operations, struct btrkit_error *err);

/* By several threads, so not deterministic. Another one commits meanwhile, @commits times. */
int plan_run_threads(struct btrkit_fs *fs, unsigned seed, unsigned commits, struct btrkit_error *err);

#endif
