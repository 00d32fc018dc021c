/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_EXTENTS_H
#define BTRKIT_MODIFY_EXTENTS_H

/* File extents of an inode whose lock is held. Offsets and lengths are multiples of the sector size. */

#include "lib/format/items/files/file_extent.h"
#include "lib/modify/names/entries.h"

/* A file extent item. Its contents belong to the reader. */
struct extent_at {
	struct btrkit_key key;
	uint64_t end; /* offset in the file; for an inline extent the end of its sector */
	struct file_extent fe;
	struct item item;
};

/* Finds the first file extent that overlaps [@from, @to). @return 0; 1: there is none; <0 */
int extents_next(struct op *op, uint64_t inode, uint64_t from, uint64_t to, struct extent_at *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Removes the range [@from, @to) from the file, splitting extents that are partly inside; an inline extent must be
 * entirely inside. Updates nbytes of the inode. Changes at most @max items; *@done: the end of what was removed.
 */
int extents_drop(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Inserts a file extent where the file has none. Updates nbytes of the inode. */
int extents_put(struct op *op, struct op_inode *in, uint64_t offset, const struct file_extent *fe,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Without the feature no-holes a hole has an item too: inserts one where the file has no extent. */
int extents_put_hole(struct op *op, struct op_inode *in, uint64_t from, uint64_t to,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * When a file grows, extents past its old end become a hole, except preallocated ones. Without no-holes a crash may
 * have left extents there, with data that never became part of the file.
 *
 * Checks whether this takes more than a regular operation can do along with its own work.
 * @return 0: at most one item has to be inserted; 1: more; <0
 */
int extents_check_behind(struct op *op, uint64_t inode, uint64_t from, uint64_t to,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Clears that range. Drops or inserts at most @max extents; *@done: the end of what was cleared. */
int extents_clear_behind(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The maximum size of inline data. */
static inline uint32_t extents_inline_max(const struct op *op)
{
	const uint32_t sector = op->txn->fs->geometry.sectorsize - 1, room = entry_room(op) - FILE_EXTENT_INLINE_START;

	return room < sector ? room : sector;
}

/* Past any possible end of a file, and aligned for every sector size. */
#define EXTENTS_END (UINT64_MAX - 4095)

static inline uint64_t sector_down(const struct op *op, uint64_t n)
{
	return n & ~((uint64_t)op->txn->fs->geometry.sectorsize - 1);
}

static inline uint64_t sector_up(const struct op *op, uint64_t n)
{
	return sector_down(op, n + op->txn->fs->geometry.sectorsize - 1);
}

#endif
