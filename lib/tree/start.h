/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_START_H
#define BTRKIT_TREE_START_H

/* What the files of opening share; and where trees start: where the superblock says, or where the opener does. */

#include "lib/tree/filesystem.h"

/* Tells the opener's note function, if there is one. */
void open_note(const struct btrkit_open_options *opts, const char *fmt, ...) BTRKIT_PRINTF(2, 3);

/* @return 0; -EINVAL: options that contradict each other, or BTRKIT_OPEN_WRITE */
int start_judge(const struct btrkit_open_options *opts, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Fills in fs->root_tree and fs->chunk_tree, as far as no block has to be read for it. @return 0; -ENOENT; -EUCLEAN */
int start_roots(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The rest of either, when its chunk is known. @return 0; -EINVAL, -EUCLEAN, -EIO, -ENODATA, -ENOMEM */
int start_chunk_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
int start_tree_root(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Tells the volume of all devices and chunks, or with BTRKIT_OPEN_PARTIAL of what can be read of them. @return 0; <0 */
int chunks_read(struct btrkit_fs *fs, const struct btrkit_open_options *opts,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * What failed with @ret while chunks and devices were read is kept, if that is damage and the filesystem may be opened
 * all the same. @return 0 if so; else @ret
 */
int start_partial(struct btrkit_fs *fs, const struct btrkit_open_options *opts, int ret,
		  const struct btrkit_error *what, struct btrkit_error *err);

#endif
