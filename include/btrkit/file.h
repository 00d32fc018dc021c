/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FILE_H
#define BTRKIT_FILE_H

/**
 * @file
 * Reading file contents. Data is verified by its checksums; if a copy is bad, another one is read.
 *
 * Only one thread at a time may use an open file. Many files may be open on one filesystem. An open file shows the file
 * as it was when it was opened: open it again after the filesystem has changed. A commit may have reused the space of
 * what was there before, which is then reported as corruption.
 */

#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

struct btrkit_file;

/**
 * Opens a regular file, or a symbolic link, whose contents are its target, for reading.
 *
 * @param ret	receives the file; free it with btrkit_file_close() before @p fs is closed
 * @return 0; -ENOENT: no such subvolume or inode; -EINVAL: an inode of another type; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_file_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_file **ret,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Closes a file and frees it. NULL is allowed. @return NULL. Since: 0.1 */
struct btrkit_file *btrkit_file_close(struct btrkit_file *f);

/**
 * Reads up to @p len bytes at @p offset. Holes and preallocated space read as zeros; compressed data is decompressed.
 * As in Linux, a compressed extent that yields less than it claims is padded with zeros, and inline data that does so
 * is corrupt.
 *
 * @param buf	receives the data; undefined after a failure
 * @param len	in bytes
 * @param got	receives the number of bytes read: less than @p len only at the end of the file, 0 beyond it
 * @return 0; -EUCLEAN: no copy of the data matches its checksum, or an item is corrupt; -EOPNOTSUPP: a compression that
 *	   this build lacks, named in the message, or a filesystem with a raid-stripe-tree; -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_file_read(struct btrkit_file *f, uint64_t offset, void *buf, size_t len, size_t *got,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Finds the next data at or after @p offset, like lseek(2) with SEEK_DATA, and its length. Holes and preallocated space
 * are not data. Data ends where it is not known what follows; then the next call fails.
 *
 * @param start	receives where the data begins; the file size if there is none
 * @param length	receives the number of bytes of data there; 0 if there are none
 * @return 0; -EUCLEAN, -EIO, -ENXIO, -ENOMEM
 * Since: 0.1
 */
int btrkit_file_next_data(struct btrkit_file *f, uint64_t offset, uint64_t *start, uint64_t *length,
			  struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * After btrkit_file_read() or btrkit_file_next_data() failed: tells which bytes the failure is about. What is before
 * them, and what is behind them, may well be read. An example: of a file of three leaves of extents, the second leaf is
 * damaged. A read of the whole file fails. Lost are the bytes from the first extent of the second leaf, which the
 * leaf's key in its parent tells, to the first extent of the third leaf. If data itself cannot be read, they are
 * sectors, of which only the part that was asked for counts, or the rest of the extent if it is compressed.
 *
 * @param start	receives the first byte that is lost, which is not before the offset that was given
 * @param length	receives the number of bytes, not 0
 * @return 0; 1: the last call did not fail, or not because of what is in the filesystem
 * Since: 0.2
 */
int btrkit_file_lost(const struct btrkit_file *f, uint64_t *start, uint64_t *length) BTRKIT_MUST_CHECK;

/**
 * Calls @p fn once with the target of a symbolic link.
 *
 * @return 0; -ENOENT: no such subvolume or inode; -EINVAL: not a symbolic link; what @p fn returned; -EUCLEAN, -EIO,
 *	   -ENXIO, -ENOMEM
 * Since: 0.2
 */
int btrkit_link_target(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_path_fn fn, void *ctx,
		       struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
