/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SOURCE_ARCHIVE_H
#define BTRKIT_SOURCE_ARCHIVE_H

#include "config.h"

#include "lib/source/state.h"

struct archive;
struct archive_entry;

/* What a global header says of the members behind it. */
struct archive_global {
	bool set;
	int64_t sec; /* a time, or a number */
	uint32_t nsec;
};
enum {
	ARCHIVE_GLOBAL_UID,
	ARCHIVE_GLOBAL_GID,
	ARCHIVE_GLOBAL_MTIME, /* times from here on */
	ARCHIVE_GLOBAL_ATIME,
	ARCHIVE_GLOBAL_CTIME,
	ARCHIVE_GLOBALS
};

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
	bool in_member;	    /* a member was begun */
	/* Bytes of the headers that libarchive reads, from @headers_at in the decompressed data on. */
	bool collects;
	char *headers;
	size_t headers_len, headers_max;
	uint64_t headers_at;
	struct archive_global globals[ARCHIVE_GLOBALS];
};

/* In archive_stream.c: */
/* Must be closed with archive_stream_close() even after a failure. */
int archive_stream_open(struct archive_stream *t, const char *path, const char *name,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Reads the headers of the next member, and applies global ones. @return 0; 1: no more members; -EUCLEAN; -EOPNOTSUPP:
 * a global header says something else; <0
 */
int archive_stream_next(struct archive_stream *t, struct archive_entry **ret,
			struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* To be called after the last member: checks that the archive is complete and that nothing follows its end. */
int archive_stream_finish(struct archive_stream *t, struct btrkit_error *err) BTRKIT_MUST_CHECK;
void archive_stream_close(struct archive_stream *t);

/* In archive_global.c: */
/* Reads global headers among those of a member, and applies all so far to the member. @return 0; <0 */
int archive_globals_apply(struct archive_stream *t, const char *headers, size_t len, struct archive_entry *e,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In archive_gzip.c: */
/* Opens @a to read from @fd, decompressing gzip data. */
int archive_open_fd(struct archive *a, int fd, const char *name, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* In archive_stream.c: */
/* Reports libarchive's error as "NAME: ...". */
int archive_fails(struct archive *a, const char *name, struct btrkit_error *err);

/* In archive_add.c: */
struct source_time archive_time(int64_t sec, long nsec);

/* What overlayfs says in attributes of a member of a layer. */
struct archive_overlay {
	bool opaque;	   /* a directory that hides what is below */
	const char *wrong; /* something else that is not supported; NULL: nothing */
};

/* In archive_xattr.c: */
struct archive_overlay archive_overlay(struct archive_entry *e);

/* Adds the xattrs of a member, and its ACLs in the xattr format of Linux. */
int archive_add_xattrs(struct source *s, uint32_t inode, struct archive_entry *e,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the mode as stat(2) shows it: if there is an ACL, its mask takes the place of the group bits. */
uint32_t archive_mode(struct archive_entry *e);

#endif
