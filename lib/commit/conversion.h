/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_COMMIT_CONVERSION_H
#define BTRKIT_COMMIT_CONVERSION_H

/*
 * A transaction whose superblock has another checksum type or fsid than the blocks on the devices. Blocks are accepted
 * in the old form and in the new one until the commit, and written in the new one; each block must therefore be copied
 * in the same transaction. The commit replaces the superblock, as always: before it, and after a crash, the filesystem
 * is completely in its old form, without any of the flags by which other programs mark conversions in place. The
 * superblocks of several devices are not replaced at once, and the fsid is how Linux finds the devices that belong
 * together, so that a crash in between would leave some that it takes for another filesystem: with several devices
 * the fsid cannot be changed, but the checksum type can.
 *
 * For example, from crc32c to xxhash: conversion_begin() with the new type, conversion_copy_blocks(), commit.
 */

#include "lib/commit/txn.h"

struct conversion {
	const struct csum_kind *csum; /* NULL: the type stays */
	const uint8_t *fsid;	      /* NULL: the fsid stays */
	/* Blocks keep the old fsid, which becomes the metadata UUID: they need not be copied for the new one. */
	bool keeps_blocks;
};

/*
 * Begins a conversion in a transaction that has changed nothing. Requires exclusive use, up to the commit or abort.
 * @return 0; -EINVAL: one is under way; -EOPNOTSUPP: another fsid, and there are several devices; another checksum
 * type, and there are checksums of data, which this does not convert; <0
 */
int conversion_begin(struct btrkit_txn *txn, const struct conversion *to, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Copies all blocks of all trees, and enters the new fsid where items have it. Blocks that trees share are copied for
 * each of them. The caller must have reserved as many blocks as there are. If this fails, the transaction has failed.
 */
int conversion_copy_blocks(struct btrkit_txn *txn, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The conversion is committed, or dropped. */
void conversion_end(struct btrkit_txn *txn, bool committed);

#endif
