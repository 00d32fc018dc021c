/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_EXTRACT_DIRECTORY_H
#define BTRKIT_EXTRACT_DIRECTORY_H

/*
 * A directory as a target. Others may change it meanwhile, and a symbolic link in it may lead anywhere: everything is
 * done in directories that are open, one step at a time, and no link is followed.
 */

#include <sys/types.h>

#include "lib/extract/extract.h"

/* As many directories are open at once; those above are opened again when they are come back to. */
#define LEVELS_OPEN 64u

/* A directory on the way to the one that is worked in. */
struct level {
	int fd;	    /* -1: not open now */
	char *name; /* in the one above; NULL: the target itself */
	dev_t dev;
	ino_t ino;
};

struct directory {
	struct level *levels; /* the first is the target itself and stays open */
	size_t n, room;
	unsigned refused; /* kinds of attributes of which it was told that they cannot be set here */
};

/* @return a descriptor that belongs to @d; -1: told by errno */
int levels_fd(struct directory *d);
/* Enters the directory @name. @return 0; <0, a negative errno: it cannot be opened, or is none */
int levels_enter(struct directory *d, const char *name);
void levels_leave(struct directory *d);
void levels_close(struct directory *d);
/* The directory that @path lies in, from the target on. To be closed. @return -1: errno tells */
int levels_open_parent(const struct directory *d, const char *path);

/*
 * What an inode says, for what was made. @fd is of itself, or @dir and the name are it.
 * @return 0; <0
 */
int attributes_set_fd(struct extract *x, const struct extract_item *item, int fd);
int attributes_set_at(struct extract *x, const struct extract_item *item, int dir);

/* Inode flags, if they are asked for: of an empty file, or a directory, and when nothing else is to be set any more. */
int flags_set_early(struct extract *x, const struct extract_item *item, int fd);
int flags_set_late(struct extract *x, const struct extract_item *item, int fd);
/*
 * A file that is made immutable or append-only gets no further names: that is taken back.
 * @return a descriptor, to be closed, by which flags_set_late() sets it again; -1: there is nothing to set
 */
int flags_lift(const struct extract *x, const struct extract_item *item, int dir, const char *name);

#endif
