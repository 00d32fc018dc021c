/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_PRINT_FILES_H
#define BTRKIT_PRINT_FILES_H

/* Common functions of ls and stat. */

#include <btrkit/inode.h>

#include "lib/base/emit.h"

/* How to report problems. */
struct problems {
	btrkit_problem_fn problem; /* NULL: the first problem is an error */
	void *ctx;
	struct btrkit_error *err; /* receives errors that end the command */
};
/* Reports the failure @ret of @path, unless it ends the command. @return 0: continue; <0 */
int problem_tell(const struct problems *to, const char *path, int ret, const struct btrkit_error *what);

/* A string like "drwxr-xr-x". */
#define MODE_TEXT 11
void mode_text(uint32_t mode, char to[MODE_TEXT]);

/* Description of a file type: "directory", "regular file", ... */
const char *type_text(uint32_t mode);

/* Prints the members type, mode, nlink, uid, gid, size, and for device nodes major and minor. */
void inode_members_emit(struct emit *e, const struct btrkit_inode *i);
/* Prints a time as a member with seconds and nanoseconds. */
void time_member_emit(struct emit *e, const char *key, const struct btrkit_time *t);

/* Reads the target of a symbolic link, and ends it with a null byte. The caller frees it. @return 0; <0 */
int link_target(struct btrkit_fs *fs, const struct btrkit_inode *i, char **ret, size_t *len,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Copies a path without leading and trailing slashes, empty components and ".". The caller frees it. @return NULL: out
 * of memory
 */
char *path_tidy(const char *path);

#endif
