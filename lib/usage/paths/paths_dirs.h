/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_PATHS_DIRS_H
#define BTRKIT_USAGE_PATHS_DIRS_H

#include "lib/usage/paths/paths.h"

/* Appends a name; NULL: reserves @len bytes. @return its offset; UINT64_MAX: out of memory */
uint64_t paths_add_name(struct array *names, const void *name, size_t len);
/* Finds the subvolumes in the root tree. */
int paths_find_subvolumes(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Finds the directories among the inodes. */
int paths_find_dirs(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/*
 * Returns the number of the directory with an inode; *hint is a number to try first. @return PATHS_NONE: there is none
 */
uint32_t paths_find_dir(const struct paths_work *pw, const struct paths_subvolume *s, uint64_t inode, uint32_t *hint);

/* In paths_lost.c: */
/* Adds directories whose inode or INODE_REF is lost, for which the trees of all subvolumes are read. */
int paths_find_lost(struct paths_work *pw, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
