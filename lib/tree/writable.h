/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_WRITABLE_H
#define BTRKIT_TREE_WRITABLE_H

#include "lib/tree/filesystem.h"

/*
 * Checks whether an open filesystem may be written: features and flags, unfinished operations, with @devices also
 * whether the devices can be.
 * @return 0; -EOPNOTSUPP: the error says why not; -EROFS; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 */
int fs_check_write(struct btrkit_fs *fs, bool devices, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether Linux would resume a device replacement when it mounts the filesystem. @return 0; <0 */
int writable_replacing(struct btrkit_fs *fs, bool *unfinished, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
