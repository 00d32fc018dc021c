/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FS_FILE_H
#define BTRKIT_FS_FILE_H

#include <btrkit/file.h>
#include <btrkit/inode.h>

/*
 * Finds the first byte at or after @offset that is neither in a hole nor in a preallocated extent. *ret is the file
 * size if there is none.
 */
int file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Reads the target of a symbolic link, and ends it with a null byte. The caller frees it. @return 0; <0 */
int file_link_target(struct btrkit_fs *fs, const struct btrkit_inode *i, char **ret, size_t *len,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
