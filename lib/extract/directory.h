/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_DIRECTORY_H
#define BTRKIT_EXTRACT_DIRECTORY_H

/*
 * Extracts to a directory. Other users may change it at the same time, and symbolic links in it may lead anywhere. So
 * all operations are relative to open directories, one path component at a time, and do not follow links.
 */

#include <sys/types.h>

#include "lib/extract/extract.h"

/* Maximum number of open directories; their parents are reopened when they are needed again. */
#define LEVELS_OPEN 64u

/* A directory on the path to the current directory. */
struct level {
	int fd;	    /* -1: currently not open */
	char *name; /* relative to the previous level; NULL: the target itself */
	dev_t dev;
	ino_t ino;
};

struct directory {
	struct level *levels; /* the first is the target itself, and stays open */
	size_t n, room;
	unsigned refused; /* kinds of attributes that are not supported, which was reported */
};

/* In levels.c: */
/* The current directory. @return a descriptor owned by @d; -1 with errno set */
int levels_fd(struct directory *d);
/* Enters the directory @name. @return 0; <0: a negative errno if it cannot be opened or is not a directory */
int levels_enter(struct directory *d, const char *name);
void levels_leave(struct directory *d);
void levels_close(struct directory *d);
/*
 * Opens the parent directory of @path, which is relative to the target. The caller closes it. @return -1 with errno set
 */
int levels_open_parent(const struct directory *d, const char *path);

/* In attributes.c: */
/* Sets the attributes of a file, which is either @fd, or the item's name in @dir. @return 0; <0 */
int attributes_set_fd(struct extract *x, const struct extract_item *item, int fd);
int attributes_set_at(struct extract *x, const struct extract_item *item, int dir);

/* In flags.c: */
/*
 * Sets inode flags, if requested: before anything is written to a file or directory, and after everything else was set.
 */
int flags_set_early(struct extract *x, const struct extract_item *item, int fd);
int flags_set_late(struct extract *x, const struct extract_item *item, int fd);
/*
 * Clears the immutable and append-only flags of a file, which would prevent additional links.
 * @return a descriptor for flags_set_late(), to be closed by the caller; -1: no flags to restore
 */
int flags_lift(const struct extract *x, const struct extract_item *item, int dir, const char *name);

#endif
