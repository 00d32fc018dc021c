/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_MODIFY_EXTENTS_H
#define BTRKIT_MODIFY_EXTENTS_H

/* The file extents of an inode whose lock is held: offsets and lengths are multiples of the sector size. */

#include "lib/format/items/file_extent.h"
#include "lib/modify/entries.h"

/* The first file extent of an inode that covers something from @from on, before @to. Its bytes belong to the reader. */
struct extent_at {
	struct btrkit_key key;
	uint64_t end; /* in the file; of an inline one the end of its sector */
	struct file_extent fe;
	struct item item;
};

/* @return 0; 1 there is none; <0 */
int extents_next(struct op *op, uint64_t inode, uint64_t from, uint64_t to, struct extent_at *ret,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Takes away what the file has from @from to @to; what it has of the same extents besides stays. An inline extent must
 * be inside. Counts in the inode's nbytes. At most @max items are changed; *@done is how far it came.
 */
int extents_drop(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* A file extent where the file has none. Counts in nbytes. */
int extents_put(struct op *op, struct op_inode *in, uint64_t offset, const struct file_extent *fe,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Without the feature no-holes a hole has an item too: puts one where the file has nothing. */
int extents_put_hole(struct op *op, struct op_inode *in, uint64_t from, uint64_t to,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * What lies behind the end of a file when it is to grow: what was kept free stays, and the rest becomes a hole. A crash
 * may have left extents there, without no-holes, with data that was never the file's.
 *
 * The first says whether there is too much of that for an operation to do it beside other things.
 * @return 0: it takes one item at the most; 1: it takes more; <0
 */
int extents_judge_behind(struct op *op, uint64_t inode, uint64_t from, uint64_t to,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* At most @max extents go and holes come; *@done is how far it came. */
int extents_clear_behind(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Bytes that an inline extent may have. */
static inline uint32_t extents_inline_max(const struct op *op)
{
	const uint32_t sector = op->txn->fs->super.sectorsize - 1, room = entry_room(op) - FILE_EXTENT_INLINE_START;

	return room < sector ? room : sector;
}

/* Behind all that a file can have, of sectors of any size. */
#define EXTENTS_END (UINT64_MAX - 4095)

static inline uint64_t sector_down(const struct op *op, uint64_t n)
{
	return n & ~((uint64_t)op->txn->fs->super.sectorsize - 1);
}

static inline uint64_t sector_up(const struct op *op, uint64_t n)
{
	return sector_down(op, n + op->txn->fs->super.sectorsize - 1);
}

#endif
