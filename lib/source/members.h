/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_MEMBERS_H
#define BTRKIT_SOURCE_MEMBERS_H

/* Paths of archives and manifests, name by name. */

#include "lib/source/build.h"

/* A path leads to a directory, and to a name in it. */
struct member {
	uint32_t parent; /* SOURCE_NONE: the top directory itself */
	const char *name;
	size_t len;
};

/* Why a path cannot be that of a member; NULL: it can be. */
const char *member_path_wrong(const char *path);
/*
 * Finds the directory; one that has not come is made as @implicit says, if that is not NULL.
 * @return 0; 1: excluded; -ENOENT: no such directory, without an error; <0
 */
int member_find(struct source *s, const char *path, const struct source_attr *implicit, struct member *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The inode of a path, not excluded. @return SOURCE_NONE: there is none */
uint32_t member_inode(struct source *s, const char *path);
/* Adds it, or gives attributes to what was made as a parent. @return 0; 1: excluded; -EEXIST; <0 */
int member_add(struct source *s, const struct member *m, const struct source_attr *a, uint32_t *inode,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Whether it stands for a file that is to be removed, as in the layers of containers, and no option takes it as it is.
 * @a: NULL of a hard link, which only its name can make one
 */
bool member_is_whiteout(const struct source *s, const struct member *m, const struct source_attr *a);

#endif
