/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_SYNC_SUPERS_H
#define BTRKIT_COMMIT_SYNC_SUPERS_H

/* The mirrors of superblocks after a crash. */

#include "lib/tree/filesystem.h"

/* In sync_supers.c: */
/*
 * Rewrites every mirror that is invalid, or of another filesystem or generation. To be called before anything
 * else is written through a handle.
 * @return 0; as commit_supers_check(), then nothing was written; <0
 */
int commit_sync_supers(struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
