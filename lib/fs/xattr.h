/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_XATTR_H
#define BTRKIT_FS_XATTR_H

#include <btrkit/inode.h>

/* Calls a function for each attribute of an inode whose name has the hash @from or a greater one. */
int xattrs_from(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t from, btrkit_xattr_fn fn, void *ctx,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
