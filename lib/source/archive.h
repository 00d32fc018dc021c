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
	struct archive *members; /* reads members from the decompressed bytes */
	/* The last block passed to libarchive, and the total of all blocks. */
	const void *block;
	size_t len;
	uint64_t given;
	bool ends_in_zeros; /* of the data so far */
};

/* Must be closed with archive_stream_close() even after a failure. */
int archive_stream_open(struct archive_stream *t, const char *path, const char *name,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To be called after the last member: checks that the archive is complete and that nothing follows its end. */
int archive_stream_finish(struct archive_stream *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void archive_stream_close(struct archive_stream *t);

/* Opens @a to read from @fd, decompressing gzip data. */
int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reports libarchive's error as "NAME: ...". */
int archive_fails(struct archive *a, const char *name, struct btrkit_error *err);

/* Adds the xattrs of a member, and its ACLs in the xattr format of Linux. */
int archive_add_xattrs(struct source *s, uint32_t inode, struct archive_entry *e,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the mode as stat(2) shows it: if there is an ACL, its mask takes the place of the group bits. */
uint32_t archive_mode(struct archive_entry *e);

#endif
