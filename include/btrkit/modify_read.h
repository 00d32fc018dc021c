/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_READ_H
#define BTRKIT_MODIFY_READ_H

/**
 * @file
 * Reading what a transaction has changed: inodes, directory entries, extended attributes and contents.
 *
 * These functions see all changes at any time, also those that are only in memory, and any number of threads may use
 * them while others change something. What is read in one step is never half changed: an inode, an attribute, and a
 * part of a directory or of a file. They change nothing themselves, and a failure has no consequences for the
 * transaction. No lock is held while a callback runs, so it may call any function of the transaction except those that
 * need exclusive use of it.
 */

#include <btrkit/modify.h>

BTRKIT_BEGIN_DECLS

/**
 * Reads an inode.
 *
 * @param root	objectid of the subvolume
 * @param inode	inode number
 * @param ret	receives the inode
 * @return 0; -ENOENT: no such subvolume or inode; the error with which the transaction has failed; -ENOMEM, -EUCLEAN,
 *	   -EIO, -ENXIO
 * Since: 0.2
 */
int btrkit_txn_inode_get(struct btrkit_txn *txn, uint64_t root, uint64_t inode, struct btrkit_inode *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each entry of a directory that comes after another, like btrkit_inode_entries_after(). If
 * entries are added or removed meanwhile, each is reported once or not at all; all others are reported once.
 *
 * @param root	objectid of the subvolume
 * @param dir	inode number of the directory
 * @param after	index of an entry; 0: start with the first
 * @return 0; -ENOTDIR; what @p fn returned; otherwise as btrkit_txn_inode_get()
 * Since: 0.2
 */
int btrkit_txn_entries_after(struct btrkit_txn *txn, uint64_t root, uint64_t dir, uint64_t after,
			     btrkit_dir_entry_fn fn, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Calls a function for each extended attribute of an inode, in the order of their name hashes, like
 * btrkit_inode_xattrs(). Attributes that are set or removed meanwhile are reported once or not at all.
 *
 * @param root	objectid of the subvolume
 * @param inode	inode number
 * @return 0; what @p fn returned; otherwise as btrkit_txn_inode_get()
 * Since: 0.2
 */
int btrkit_txn_xattrs(struct btrkit_txn *txn, uint64_t root, uint64_t inode, btrkit_xattr_fn fn, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Reads up to @p len bytes of a regular file, or of a symbolic link, whose contents are its target. Holes and
 * preallocated space read as zeros. Reads of more than a MiB are made in several steps. Checksums of what the
 * transaction has written are put into their tree first; if that fails, so has the transaction.
 *
 * @param root	objectid of the subvolume
 * @param inode	inode number
 * @param offset	in bytes
 * @param buf	receives the data; undefined after a failure
 * @param len	in bytes
 * @param got	receives the number of bytes read: less than @p len only at the end of the file, 0 beyond it
 * @return 0; -EINVAL: an inode of another type; -EUCLEAN: no copy of the data matches its checksum, or an item is
 *	   corrupt; -EOPNOTSUPP: a compression that this build lacks; otherwise as btrkit_txn_inode_get()
 * Since: 0.2
 */
int btrkit_txn_read(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, void *buf, size_t len,
		    size_t *got, struct btrkit_error *err) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
