/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MKFS_SORT_H
#define BTRKIT_MKFS_SORT_H

/*
 * The order of file contents, given by a sort file with lines "PATH PRIORITY" like that of mksquashfs -sort. The
 * priority of a directory applies to everything below it that has no line of its own. The default is 0.
 */

#include "lib/source/source.h"

struct mkfs_sort;

/* @return 0; -EINVAL: an invalid line (the message has its number); -ENOMEM, -ENOENT or another error of reading */
int mkfs_sort_read(const char *file, struct mkfs_sort **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* NULL is allowed. */
struct mkfs_sort *mkfs_sort_destroy(struct mkfs_sort *s);

/*
 * Lists the regular files of a source by descending priority; files of equal priority in the order of their inodes.
 * @ret to be freed by the caller
 * @return 0; -ENOENT: a line with a path that does not exist (the message has its number); -ENOMEM
 */
int mkfs_sort_files(const struct mkfs_sort *s, const struct source *source, uint32_t **ret, uint32_t *count,
		    struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
