/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_EXTRACT_H
#define BTRKIT_EXTRACT_EXTRACT_H

/* What comes out of a filesystem, and where it goes. */

#include <btrkit/extract.h>
#include <btrkit/file.h>

#include "lib/base/hash.h"
#include "lib/fs/descent.h"
#include "lib/tree/cursor.h"

struct extract;

/* An extended attribute; its name ends with a zero byte, and so would a text in its value. */
struct extract_xattr {
	char *name;
	uint8_t *value;
	size_t name_len, value_len;
};

/* Something that has a name. */
struct extract_item {
	const char *path; /* of the whole name; "" is the top */
	const char *name; /* the last part of it */
	struct btrkit_inode i;
	const struct extract_xattr *xattrs;
	size_t num_xattrs;
	bool xattrs_lost;   /* not all could be read, which was told */
	const char *target; /* of a symbolic link */
	const char *link;   /* path under which the inode came already */
};

/*
 * Where it goes. All return 0, or what ends the work; what is wrong with one item is told by extract_problem() or
 * extract_unmade().
 */
struct extract_target {
	/* A directory above what was asked for, to be gone into and left again. */
	int (*above)(struct extract *x, const char *name);
	int (*above_end)(struct extract *x);
	/* A directory. @return 1: it could not be made, and nothing below it can */
	int (*enter)(struct extract *x, const struct extract_item *item);
	/* All that is in it is there. */
	int (*leave)(struct extract *x, const struct extract_item *item);
	int (*other)(struct extract *x, const struct extract_item *item);
	/* A further name. @return 1: it cannot be one here, and is to be another file */
	int (*link)(struct extract *x, const struct extract_item *item);
};

/* An inode that has names still to come. */
struct extract_link {
	struct {
		uint64_t root, inode;
	} key;
	char *path;
	uint32_t left;
	UT_hash_handle hh;
};

/* A directory that is being gone through. */
struct extract_frame {
	uint64_t root, inode;
	uint64_t next;	  /* index of the next entry */
	bool at_end;	  /* there is none above the last index of all */
	bool xattrs_lost; /* as of its item */
	size_t path_len;
	size_t name_at; /* in the path */
};

#define EXTRACT_PIECE ((size_t)1 << 20)
#define EXTRACT_STEP ((size_t)4096)

struct extract {
	struct btrkit_fs *fs;
	const struct btrkit_extract_options *opts;
	const struct extract_target *target;
	void *to; /* the target's */
	struct btrkit_extract_result *result;
	struct btrkit_error *err;
	struct cursor c; /* in the tree of the directory that was read last */
	struct descent descent;
	struct extract_frame *frames;
	size_t num_frames, room_frames;
	char *path; /* of what is at hand */
	size_t path_len, path_room;
	struct extract_link *links;
	struct extract_xattr *xattrs;
	size_t num_xattrs, room_xattrs;
	uint8_t *buf; /* EXTRACT_PIECE */
};

/* All that is asked for, to x->target. */
int extract_run(struct extract *x, uint64_t root, const char *const *paths, size_t n) BTRKIT_MUST_CHECK;

/* What could not be read. @return 0: go on; <0 */
int extract_problem(struct extract *x, const char *path, int ret, const struct btrkit_error *what) BTRKIT_MUST_CHECK;
/* What the operating system refused to make; @fmt is what was tried. @return 0: go on; <0: nothing more will succeed */
int extract_unmade(struct extract *x, const char *path, int errnum, const char *fmt, ...) BTRKIT_MUST_CHECK
	BTRKIT_PRINTF(4, 5);
/* What the target has no form for. */
int extract_left_out(struct extract *x, const char *path, const char *why) BTRKIT_MUST_CHECK;

int extract_progress(struct extract *x) BTRKIT_MUST_CHECK;

/* Takes bytes of a file. @return 0; 1: enough, something was told; <0 */
typedef int (*extract_put_fn)(void *ctx, uint64_t offset, const void *data, size_t len);

/*
 * The data of a file, which is told of if it is damaged: hands out what is not in holes.
 * @end	the first byte that did not come: the size of the file if all did
 */
int extract_contents(struct extract *x, struct btrkit_file *f, const struct extract_item *item, extract_put_fn put,
		     void *ctx, uint64_t *end) BTRKIT_MUST_CHECK;

/*
 * Attributes into x->xattrs.
 * @told	that they cannot be read was told before
 * @return 0; 1: could not be read, which was told; <0
 */
int extract_load_xattrs(struct extract *x, const char *path, uint64_t root, uint64_t inode,
			bool told) BTRKIT_MUST_CHECK;
void extract_drop_xattrs(struct extract *x);

/* Inodes with several names. The item's link is set where one of them was met; otherwise this name is remembered. */
int extract_find_link(struct extract *x, struct extract_item *item) BTRKIT_MUST_CHECK;
/* The name at hand takes the place of the one that is remembered, if one is. */
int extract_move_link(struct extract *x, const struct extract_item *item) BTRKIT_MUST_CHECK;
/* One of the further names came. */
void extract_end_link(struct extract *x, const struct extract_item *item);
void extract_free_links(struct extract *x);

#endif
