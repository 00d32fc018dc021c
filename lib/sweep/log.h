/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SWEEP_LOG_H
#define BTRKIT_SWEEP_LOG_H

/*
 * Reads the log trees: what fsync wrote since the last commit, and Linux merges into the subvolumes when it mounts the
 * filesystem. The log root tree has a root item for the log of each subvolume. A log is one tree with inodes, names,
 * extents and checksums of several files, which need not be complete without the subvolume. Neither the blocks nor the
 * data that only logs refer to are in the extent tree.
 *
 * The reader validates each item, decodes it, and tells the caller what it says, in key order. What the logs say
 * together with the committed trees is up to the caller.
 */

#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/root.h"
#include "lib/sweep/leaves.h"

/* An item with its location. */
struct sweep_log_item {
	const struct node *leaf;
	uint32_t slot;
	const struct item *item;
};

/*
 * The events. Each function returns 0, or a result that ends the reading, and may be NULL. Items without a function for
 * what they are need not be valid, unless there is item().
 */
struct sweep_log_events {
	/* Before and after the items of the log root tree (@top), and of each log. *read is true; false skips it. */
	int (*begin)(void *ctx, const struct tree_root *root, bool top, bool *read, struct btrkit_error *err);
	int (*end)(void *ctx, const struct tree_root *root, bool top, struct btrkit_error *err);
	/*
	 * In the log root tree: a root item. *read: whether to read that tree later, on entry only if it is a log. The
	 * subvolume is the offset of its key.
	 */
	int (*tree)(void *ctx, const struct sweep_log_item *at, const struct root_item *root, bool *read,
		    struct btrkit_error *err);
	/* A valid item of any type, before its own event. *take is true; false: that one is left out. */
	int (*item)(void *ctx, const struct sweep_log_item *at, bool top, bool *take, struct btrkit_error *err);
	/* Why an item is invalid; @what has its location. */
	int (*invalid)(void *ctx, const struct sweep_log_item *at, int ret, const struct btrkit_error *what,
		       struct btrkit_error *err);
	/* The first item of a leaf, if its key is not greater than the last one before. */
	int (*disorder)(void *ctx, const struct sweep_log_item *at, struct btrkit_error *err);

	int (*inode)(void *ctx, const struct sweep_log_item *at, const struct inode_item *inode,
		     struct btrkit_error *err);
	/* A name of an inode, from an INODE_REF or INODE_EXTREF. */
	int (*name)(void *ctx, const struct sweep_log_item *at, const struct inode_ref *ref, struct btrkit_error *err);
	/* An entry of a directory; @number in its item, which only has several in a DIR_ITEM. */
	int (*entry)(void *ctx, const struct sweep_log_item *at, unsigned number, const struct dir_entry *entry,
		     struct btrkit_error *err);
	/* A range of indexes of a directory whose entries are all in the log, so that others in it were deleted. */
	int (*range)(void *ctx, const struct sweep_log_item *at, uint64_t first, uint64_t last,
		     struct btrkit_error *err);
	int (*attribute)(void *ctx, const struct sweep_log_item *at, const struct dir_entry *attribute,
			 struct btrkit_error *err);
	int (*extent)(void *ctx, const struct sweep_log_item *at, const struct file_extent *extent,
		      struct btrkit_error *err);
	/* Checksums of @length bytes from address @start on. */
	int (*csums)(void *ctx, const struct sweep_log_item *at, uint64_t start, uint64_t length, const uint8_t *csums,
		     struct btrkit_error *err);
	void *ctx;
};

/* Reads all logs of the filesystem; without a log, nothing is done. @return 0, or what ended the reading; -ENOMEM */
int sweep_logs(const struct btrkit_fs *fs, const struct sweep_blocks *from, const struct sweep_log_events *to,
	       struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
