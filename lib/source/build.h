/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_BUILD_H
#define BTRKIT_SOURCE_BUILD_H

/*
 * How readers fill a source. What options say of owners, excluded names, attributes, subvolumes and flags is done in
 * here, for all readers alike: they tell what they found.
 */

#include <sys/types.h>

#include "lib/source/source.h"

/* As found. */
struct source_attr {
	uint64_t size; /* regular files */
	struct source_time atime, mtime, ctime;
	uint32_t mode, uid, gid, rdev;
	const char *text;  /* as in struct source_inode; copied */
	bool is_inline;	   /* of a regular file: @text is its contents, as many bytes as @size says */
	uint32_t identity; /* of a regular file that source_file_open() opens: source_identity() */
};

/* What tells a file from another that took its place, beside size and times. */
uint32_t source_identity(dev_t device, ino_t inode);

/*
 * Adds a name and its inode. Names must not be empty, ".", "..", nor have a slash or a zero byte in them.
 * @return 0; 1: an option excludes it (a directory's entries need not be added then); -EINVAL; -ENOMEM
 */
int source_add(struct source *s, uint32_t parent, const char *name, size_t len, const struct source_attr *a,
	       uint32_t *inode, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Another name of an inode, not a directory. @return 0; 1: excluded; -EMLINK; -EINVAL; -ENOMEM */
int source_add_link(struct source *s, uint32_t parent, const char *name, size_t len, uint32_t inode,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* An attribute of an inode that was added, unless the options leave it out. @return 0; -EINVAL; -ENOMEM */
int source_add_xattr(struct source *s, uint32_t inode, const char *name, const void *value, size_t len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* What is known now of the root (0), or of a directory that was added as a parent before it came itself. */
int source_set_attr(struct source *s, uint32_t inode, const struct source_attr *a,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Before source_finish(), in a source that keeps an index (archives, manifests). @return an inode or SOURCE_NONE */
uint32_t source_find(const struct source *s, uint32_t parent, const char *name, size_t len);

/*
 * All is there: sorts, numbers, and judges what could not be judged alone. But for an archive's, inodes lie elsewhere
 * afterwards.
 * @return 0; -EEXIST: a name twice; -ENOENT: a path of an option that is not there; -EINVAL; -ENOMEM
 */
int source_finish(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The readers. */
int source_read_directory(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int source_read_archive(struct source *s, const struct source_sink *sink, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int source_read_manifest(struct source *s, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
