/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_START_H
#define BTRKIT_TREE_START_H

/* Shared by the files that open filesystems; and the roots to start from: by the superblock, or as requested. */

#include "lib/tree/filesystem.h"

/* In filesystem.c: */
/* Passes a note to the callback, if there is one. */
void open_note(const struct btrkit_open_options *opts, const char *fmt, ...) BTRKIT_PRINTF(2, 3);
/* Passes a note about missing or stale devices to the callback for these. */
void open_note_device(const struct btrkit_open_options *opts, const struct btrkit_error *what);

/* In start.c: */
/* Checks options. @return 0; -EINVAL: they contradict each other, or BTRKIT_OPEN_WRITE */
int start_check(const struct btrkit_open_options *opts, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Sets fs->root_tree and fs->chunk_tree, as far as no block has to be read. @return 0; -ENOENT; -EUCLEAN */
int start_roots(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Completes the chunk root or tree root, when its chunk is known.
 * @return 0; -EINVAL, -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int start_chunk_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
int start_tree_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In chunks.c: */
/* Adds all devices and chunks to the volume; with BTRKIT_OPEN_PARTIAL, those that can be read. @return 0; <0 */
int chunks_read(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In start.c: */
/*
 * Keeps an error @ret of reading chunks or devices in @fs, if it is damage and BTRKIT_OPEN_PARTIAL allows that.
 * @return 0: kept; otherwise @ret
 */
int start_partial(struct btrkit_fs *fs, const struct btrkit_open_options *opts, int ret,
		  const struct btrkit_error *what, struct btrkit_error *err);

#endif
