/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_ARCHIVE_H
#define BTRKIT_SOURCE_ARCHIVE_H

#include "config.h"

#include "lib/source/state.h"

struct archive;
struct archive_entry;

struct archive_stream {
	char name[PATH_SHOWN];
	int fd;
	struct archive *bytes;	 /* decompresses */
	struct archive *members; /* reads what that gives */
	/* The last block that was given, and how much that has been in all. */
	const void *block;
	size_t len;
	uint64_t given;
	bool ends_in_zeros; /* what was given */
};

/* Close it also after a failure. */
int archive_stream_open(struct archive_stream *t, const char *path, const char *name,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* After the last member: whether that was the end. */
int archive_stream_finish(struct archive_stream *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void archive_stream_close(struct archive_stream *t);

/* Opens @a to read from @fd, without gzip's compression if there is any. */
int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* "NAME: ..." with what libarchive says of it. */
int archive_fails(struct archive *a, const char *name, struct btrkit_error *err);

/* The attributes of a member: those that are extended, and ACLs in the form in which Linux keeps them. */
int archive_add_xattrs(struct source *s, uint32_t inode, struct archive_entry *e,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* The mode as stat(2) shows it: in the bits of the group the mask of an ACL has its place. */
uint32_t archive_mode(struct archive_entry *e);

#endif
