/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_FILES_H
#define BTRKIT_SOURCE_FILES_H

/*
 * Accesses to files of the host. Attributes are only read with functions of the C library, never with direct system
 * calls, because fakeroot and pseudo intercept these functions to report other owners.
 */

#include <limits.h>
#include <sys/stat.h>

#include "lib/source/state.h"

/* In open.c: */
/* These functions return a descriptor or a negative errno. Accesses times are preserved if permitted. */
int source_openat(int dir, const char *path, int flags);
/* The path may be of any length. It is modified temporarily. */
int source_open_below(int root, char *path, int flags);
/* Opens an inode, or the directory of a layer that was merged into it. */
int source_open_inode(const struct source *s, uint32_t inode, uint32_t layer, int flags);

/* fstat(2), serialized under fakeroot, which is not thread-safe. @return 0; <0 */
int source_fstat(const struct source *s, int fd, struct stat *st);

bool source_is_target(const struct source *s, const struct stat *st);

uint32_t source_identity_and_times(const struct stat *st);

/* Reports "PATH: changed while it was read". @return -ESTALE */
int source_changed(const struct source *s, uint32_t inode, struct btrkit_error *err);
/* Reports "PATH: cannot WHAT: reason". */
int source_cannot(const struct source *s, uint32_t inode, struct btrkit_error *err, int errnum, const char *what);

/* In changes.c: */
/* Notes that a file changed if the options accept that, or reports it. By any thread. @return 0; -ESTALE; -ENOMEM */
int source_take_changed(const struct source *s, uint32_t inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int source_changes_create(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void source_changes_destroy(struct source_state *st);

#endif
