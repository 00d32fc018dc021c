/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_MEMBERS_H
#define BTRKIT_SOURCE_MEMBERS_H

/* Resolves paths of archives and manifests. */

#include "lib/source/build.h"

/* Results besides 0 and errors. */
#define MEMBER_EXCLUDED 1
#define MEMBER_HIDDEN 2 /* by a layer above */

/* A resolved path: a directory and a name in it. */
struct member {
	uint32_t parent; /* SOURCE_NONE: the top directory itself */
	const char *name;
	size_t len;
};

/* Returns why a path is not allowed for a member; NULL if it is allowed. */
const char *member_path_wrong(const char *path);
/*
 * Resolves a path. Missing directories are added with the attributes @implicit unless that is NULL.
 * @return 0; MEMBER_EXCLUDED; MEMBER_HIDDEN; -ENOENT: no such directory, @err is not set; <0
 */
int member_find(struct source *s, const char *path, const struct source_attr *implicit, struct member *ret,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the inode of a path in the current layer. @return SOURCE_NONE: there is none, or it is excluded or hidden */
uint32_t member_inode(struct source *s, const char *path);
/*
 * Adds a member, or sets the attributes of a directory that was added implicitly. @return 0; 1: excluded; -EEXIST; <0
 */
int member_add(struct source *s, const struct member *m, const struct source_attr *a, uint32_t *inode,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;
enum member_whiteout {
	WHITEOUT_NONE,
	WHITEOUT_NAME,	 /* .wh.NAME: hides NAME of the layers below */
	WHITEOUT_DEVICE, /* of overlayfs: a character device 0:0 in place of what it hides */
	WHITEOUT_OPAQUE, /* .wh..wh..opq: hides what the directory has in the layers below */
	WHITEOUT_OTHER	 /* other names that begin with .wh..wh., of aufs itself */
};
/*
 * Returns whether a member is a whiteout, which marks a file as deleted in a container layer, and the options do not
 * accept whiteouts as they are.
 * @a: NULL for a hard link, which is only recognized by its name
 */
enum member_whiteout member_whiteout(const struct source *s, const struct member *m, const struct source_attr *a);

#endif
