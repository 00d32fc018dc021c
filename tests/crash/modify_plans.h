/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_MODIFY_PLANS_H
#define BTRKIT_TESTS_CRASH_MODIFY_PLANS_H

/* Many operations of all kinds, by chance. */

#include <btrkit/btrkit.h>

#define KIB 1024u

/* Below the directories that prepare() of modify_kinds.c makes. All depends on @seed; with @between commits. */
int plan_run(struct btrkit_fs *fs, unsigned seed, unsigned operations, unsigned between, struct btrkit_error *err);

/* The same by threads, which take turns as they like. */
int plan_run_threads(struct btrkit_fs *fs, unsigned seed, struct btrkit_error *err);

#endif
