/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_BUILD_H
#define BTRKIT_SOURCE_BUILD_H

/*
 * Interface for the readers that fill a source. Options for owners, excluded names, xattrs, subvolumes and flags are
 * applied here for all readers: they only pass on what they find.
 */

#include <sys/types.h>

#include "lib/source/source.h"

/* Attributes as found in the source. */
struct source_attr {
	uint64_t size; /* regular files */
	struct source_time atime, mtime, ctime;
	uint32_t mode, uid, gid, rdev;
	const char *text;  /* as in struct source_inode; copied */
	bool is_inline;	   /* of a regular file: @text is its contents, @size bytes */
	uint32_t identity; /* of a regular file that source_file_open() opens: source_identity() */
};

/* Returns a hash of the device and inode numbers, which shows in most cases that a file was replaced. */
uint32_t source_identity(dev_t device, ino_t inode);

/*
 * Adds a name and its inode. Names that are empty, ".", "..", or contain a slash or a zero byte are refused.
 * @return 0; 1: excluded by an option (then entries of a directory need not be added); -EINVAL; -ENOMEM
 */
int source_add(struct source *s, uint32_t parent, const char *name, size_t len, const struct source_attr *a,
	       uint32_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Adds another name for an inode that is not a directory. @return 0; 1: excluded; -EINVAL; -ENOMEM */
int source_add_link(struct source *s, uint32_t parent, const char *name, size_t len, uint32_t inode,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In xattr.c: */
/* Adds an xattr to an inode, unless options exclude it. @return 0; -EINVAL; -E2BIG; -ENOMEM */
int source_add_xattr(struct source *s, uint32_t inode, const char *name, const void *value, size_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In build.c: */
/* Adds inode flags (SOURCE_CHATTR) to a file or directory; other types have none. */
void source_add_flags(struct source *s, uint32_t inode, unsigned flags);
/* Sets the attributes of the root (0) or of a directory that was added implicitly as a parent. */
int source_set_attr(struct source *s, uint32_t inode, const struct source_attr *a,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Finds a name before source_finish() in a source with an index (archives, manifests). @return an inode or SOURCE_NONE
 */
uint32_t source_find(const struct source *s, uint32_t parent, const char *name, size_t len);

/* In finish.c: */
/*
 * Completes the source: sorts and numbers everything, and checks that all paths of options exist. Inodes are moved,
 * except those of an archive.
 * @return 0; -EEXIST: a duplicate name; -ENOENT: a path of an option does not exist; -EINVAL; -ENOMEM
 */
int source_finish(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In directory.c: */
/* The readers. */
int source_read_directory(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In archive.c: */
int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In manifest.c: */
int source_read_manifest(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
