/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_FILES_H
#define BTRKIT_REPORT_FILES_H

/* What is said of files by ls and by stat. */

#include <btrkit/inode.h>
#include <btrkit/listing.h>

#include "lib/base/emit.h"

/* Who is told of what fails. */
struct problems {
	btrkit_problem_fn problem; /* NULL: the first one ends everything */
	void *ctx;
	struct btrkit_error *err; /* for what ends everything */
};
/* Tells of what failed with @ret, unless that ends everything. @return 0 to go on; <0 */
int problem_tell(const struct problems *to, const char *path, int ret, const struct btrkit_error *what);

/* "drwxr-xr-x" and a zero byte. */
#define MODE_TEXT 11
void mode_text(uint32_t mode, char to[MODE_TEXT]);

/* "directory", "regular file"...: what a mode or an entry says of the type. */
const char *type_text(uint32_t mode);

/* Members of an object: type, mode, nlink, uid, gid, size, and of a device node major and minor. */
void inode_members_emit(struct emit *e, const struct btrkit_inode *i);
/* A member, of seconds and nanoseconds. */
void time_member_emit(struct emit *e, const char *key, const struct btrkit_time *t);

/*
 * Without slashes at its ends, and without empty components and "." (a copy, to be freed); NULL: no memory
 */
char *path_tidy(const char *path);

/* The target of a symbolic link, to be freed. @return 0; <0 */
int link_target(struct btrkit_fs *fs, const struct btrkit_inode *i, char **ret, size_t *len,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
