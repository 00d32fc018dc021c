/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FILE_H
#define BTRKIT_FILE_H

/**
 * @file
 * What is in files. Data is verified by its checksums; of a copy that fails them another is read.
 *
 * An open file is one thread's at a time; many may be open on one filesystem.
 */

#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

struct btrkit_file;

/**
 * Opens a regular file or a symbolic link, whose contents are its target, for reading.
 *
 * @param root	objectid of its subvolume
 * @return 0; -ENOENT: no such subvolume or inode; -EINVAL: another type of inode; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_file_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_file **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Closes it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_file *btrkit_file_close(struct btrkit_file *f);

/**
 * Reads @p len bytes from @p offset on, or as many as there are before the file's end.
 *
 * Holes and space without data are zeros. What is compressed is decompressed.
 *
 * @param got	bytes that were read: fewer than @p len only at the end of the file, 0 behind it
 * @return 0; -EUCLEAN: damaged, no copy of the data has its checksum, or an item contradicts the format; -EOPNOTSUPP:
 *	   by name, a compression that this build does not know, or a filesystem with a raid-stripe-tree; -EIO,
 *	   -ENODATA, -ENOMEM. @p buf is undefined then
 * Since: 0.1
 */
int btrkit_file_read(struct btrkit_file *f, uint64_t offset, void *buf, size_t len, size_t *got,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Where data is: finds the first byte from @p offset on that is neither in a hole nor in space without data, as
 * SEEK_DATA of lseek(2), and how far data reaches from there.
 *
 * @param start	offset of that byte, or the size of the file where there is none
 * @param length	bytes of data from there on; 0 where there are none
 * @return 0; -EUCLEAN, -EIO, -ENODATA, -ENOMEM
 * Since: 0.1
 */
int btrkit_file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *start, uint64_t *length,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
