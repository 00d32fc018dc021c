/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_FILES_H
#define BTRKIT_SOURCE_FILES_H

/*
 * Files of the host. Only functions of the C library ask for their attributes, never system calls of our own: fakeroot
 * and pseudo step in there, and say who the owners are.
 */

#include <limits.h>
#include <sys/stat.h>

#include "lib/source/state.h"

/* These return a descriptor or a negative errno. Times of access stay as they are, where that is allowed. */
int source_openat(int dir, const char *path, int flags);
/* Of any length; @path is written to and restored. */
int source_open_below(int root, char *path, int flags);
int source_open_inode(const struct source *s, uint32_t inode, int flags);

/* One thread at a time, since fakeroot's is not made for several. @return 0; <0 */
int source_fstat(const struct source *s, int fd, struct stat *st);

bool source_is_target(const struct source *s, const struct stat *st);

uint32_t source_identity_and_times(const struct stat *st);

/* "PATH: changed while it was read": -ESTALE. */
int source_changed(const struct source *s, uint32_t inode, struct btrkit_error *err);
/* "PATH: cannot DO: reason". */
int source_cannot(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *what);

#endif
