/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_XATTR_H
#define BTRKIT_FS_XATTR_H

#include <btrkit/error.h>

/* An extended attribute; valid during the call only. */
struct xattr {
	const char *name; /* not terminated */
	const void *value;
	uint16_t name_len, value_len;
};

/* Receives one. Returns 0, or a negative errno that ends the iteration. */
typedef int (*xattr_fn)(void *ctx, const struct xattr *x);

/*
 * The extended attributes of an inode, in the order of the hashes of their names, by which Linux finds them: a name
 * under another hash is an error.
 * @return 0; -ENOENT: no such subvolume; what @fn returned; -EUCLEAN; <0
 */
int xattr_read(struct btrkit_fs *fs, uint64_t root, uint64_t inode, xattr_fn fn, void *ctx,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
