/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_SORT_H
#define BTRKIT_MKFS_SORT_H

/*
 * The order in which the contents of files are to lie, by a file with a line for each path: "PATH PRIORITY", as that of
 * mksquashfs -sort. What lies in a directory has its priority, unless a line says otherwise; the others have 0.
 */

#include "lib/source/source.h"

struct mkfs_sort;

/* @return 0; -EINVAL: a wrong line, by its number; -ENOMEM, -ENOENT and what else reading meets */
int mkfs_sort_read(const char *file, struct mkfs_sort **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct mkfs_sort *mkfs_sort_destroy(struct mkfs_sort *s);

/*
 * The regular files of a source, in the order of their priorities, the highest first; equal ones as their inodes lie.
 * @ret the caller's to free
 * @return 0; -ENOENT: a line with a path that is not there, by its number; -ENOMEM
 */
int mkfs_sort_files(const struct mkfs_sort *s, const struct source *source, uint32_t **ret, uint32_t *count,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
