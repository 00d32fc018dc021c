/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_EXTRACT_H
#define BTRKIT_EXTRACT_EXTRACT_H

/* Reads files from a filesystem, and passes them to a target. */

#include <btrkit/extract.h>
#include <btrkit/file.h>

#include "lib/base/hash.h"
#include "lib/fs/descent.h"
#include "lib/fs/dir_lost.h"
#include "lib/tree/cursor.h"

struct extract;

/* An extended attribute. Name and value are followed by null bytes. */
struct extract_xattr {
	char *name;
	uint8_t *value;
	size_t name_len, value_len;
};

/* A file, directory, or other inode with a name. */
struct extract_item {
	const char *path; /* full path; "" is the top */
	const char *name; /* last component of the path */
	struct btrkit_inode i;
	const struct extract_xattr *xattrs;
	size_t num_xattrs;
	bool xattrs_lost;   /* some could not be read, which was reported */
	bool inode_lost;    /* of a directory: the inode could not be read, which was reported */
	const char *target; /* target of a symbolic link */
	const char *link;   /* path under which the inode was extracted before */
};

/*
 * Destination. All functions return 0, or an error that ends the extraction; problems with a single item are reported
 * by extract_problem() or extract_unmade().
 */
struct extract_target {
	/* Enter or leave a parent directory of a requested path. */
	int (*above)(struct extract *x, const char *name);
	int (*above_end)(struct extract *x);
	/* Enter a directory. @return 1: it could not be created, so its contents are skipped */
	int (*enter)(struct extract *x, const struct extract_item *item);
	/* Leave a directory after all of its contents. */
	int (*leave)(struct extract *x, const struct extract_item *item);
	int (*other)(struct extract *x, const struct extract_item *item);
	/* Create a hard link. @return 1: not possible, create a separate file instead */
	int (*link)(struct extract *x, const struct extract_item *item);
};

/* An inode with more names to come. */
struct extract_link {
	struct {
		uint64_t root, inode;
	} key;
	char *path;
	uint32_t left;
	UT_hash_handle hh;
};

/* A directory being walked. */
struct extract_frame {
	uint64_t root, inode;
	uint64_t next;	  /* index of the next entry */
	bool at_end;	  /* there are no more entries with an index that can be read */
	struct dir_lost lost; /* the others */
	bool xattrs_lost, inode_lost; /* see struct extract_item */
	size_t path_len;
	size_t name_at; /* offset of the name in the path */
};

#define EXTRACT_PIECE ((size_t)1 << 20)

struct extract {
	struct btrkit_fs *fs;
	const struct btrkit_extract_options *opts;
	const struct extract_target *target;
	void *to; /* owned by the target */
	struct btrkit_extract_result *result;
	struct btrkit_error *err;
	struct cursor c; /* in the tree of the last directory that was read */
	struct descent descent;
	struct extract_frame *frames;
	size_t num_frames, room_frames;
	char *path; /* of the current item */
	size_t path_len, path_room;
	struct extract_link *links;
	struct extract_xattr *xattrs;
	size_t num_xattrs, room_xattrs;
	uint8_t *buf; /* EXTRACT_PIECE bytes */
};

/* Extracts everything that was requested to x->target. */
int extract_run(struct extract *x, uint64_t root, const char *const *paths, size_t n) BTRKIT_MUST_CHECK;

/* In problems.c: */
/* Report that @path could not be read. @return 0: continue; <0 */
int extract_problem(struct extract *x, const char *path, int ret, const struct btrkit_error *what) BTRKIT_MUST_CHECK;
/*
 * Report that the operating system failed to create something; @fmt describes the operation. @return 0: continue; <0:
 * nothing more will succeed
 */
int extract_unmade(struct extract *x, const char *path, int errnum, const char *fmt, ...) BTRKIT_MUST_CHECK
	BTRKIT_PRINTF(4, 5);
/* Report that the target does not support something. */
int extract_left_out(struct extract *x, const char *path, const char *why) BTRKIT_MUST_CHECK;

int extract_progress(struct extract *x) BTRKIT_MUST_CHECK;

/* Takes bytes of a file. @return 0; 1: stop, a problem was reported; <0 */
typedef int (*extract_put_fn)(void *ctx, uint64_t offset, const void *data, size_t len);

/* In contents.c: */
/*
 * Passes the data of a file, without holes, to @put. Each range that cannot be read is reported, and left out like a
 * hole. @end is set to the size of the file, or if @put or a callback ended the work, to where it was then.
 * @return 0; 1: a problem was reported; <0
 */
int extract_contents(struct extract *x, struct btrkit_file *f, const struct extract_item *item, extract_put_fn put,
		     void *ctx, uint64_t *end) BTRKIT_MUST_CHECK;
/* Like btrkit_file_next_data(), but goes on behind what cannot be found. */
int extract_next_data(struct btrkit_file *f, uint64_t at, uint64_t *start, uint64_t *length) BTRKIT_MUST_CHECK;

/*
 * Loads the attributes into x->xattrs. @told: it was reported before that they cannot be read.
 * @return 0; 1: failed and reported; <0
 */
int extract_load_xattrs(struct extract *x, const char *path, uint64_t root, uint64_t inode,
			bool told) BTRKIT_MUST_CHECK;
void extract_drop_xattrs(struct extract *x);

/* In links.c: */
/* Inodes with several names. Sets item->link if the inode was extracted before; otherwise remember this name. */
int extract_find_link(struct extract *x, struct extract_item *item) BTRKIT_MUST_CHECK;
/* Replaces the remembered name, if there is one, by the current name. */
int extract_move_link(struct extract *x, const struct extract_item *item) BTRKIT_MUST_CHECK;
/* Counts a name of the inode that has been handled. */
void extract_end_link(struct extract *x, const struct extract_item *item);
void extract_free_links(struct extract *x);

#endif
