/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_H
#define BTRKIT_DUMP_H

/**
 * @file
 * Superblocks and trees as text, in the words of btrfs-progs.
 */

#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** Flags of btrkit_dump_super(). Since: 0.1 */
enum btrkit_dump_super_flags {
	BTRKIT_DUMP_SUPER_FULL = 1 << 0,	/**< sys_chunk_array and backup roots too */
	BTRKIT_DUMP_SUPER_FORCE = 1 << 1	/**< even without the magic */
};

/**
 * Prints the superblock at byte @p offset of a device, as it is: a bad checksum is said in its place and is no
 * failure. On a zoned device the place of a copy that btrkit_super_offset() tells stands for the newest in its log.
 *
 * @return 0; -EMEDIUMTYPE: no magic there, and not forced; -ENODATA: the device ends before; -ENOENT: it is zoned, and
 *	   ends before the log of that copy; -EUCLEAN: zones that no log leaves behind; -EIO; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_super(struct btrkit_io *device, uint64_t offset, unsigned flags, btrkit_write_fn write, void *ctx,
		      struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Where copy @p mirror (0 to 2) of the superblock lies on a device that is not zoned; UINT64_MAX for other numbers.
 * Since: 0.1
 */
uint64_t btrkit_super_offset(unsigned mirror);

/** Flags of struct btrkit_dump_options: what of the filesystem is printed. Since: 0.1 */
enum btrkit_dump_flags {
	BTRKIT_DUMP_EXTENTS = 1 << 0,		/**< -e: extent and device trees only */
	BTRKIT_DUMP_DEVICES = 1 << 1,		/**< -d: root tree's device information: chunk and device trees */
	BTRKIT_DUMP_ROOTS = 1 << 2,		/**< -r: a line a root */
	BTRKIT_DUMP_BACKUPS = 1 << 3,		/**< -R: the same and the backup roots */
	BTRKIT_DUMP_UUIDS = 1 << 4,		/**< -u: the UUID tree only */
	BTRKIT_DUMP_FOLLOW = 1 << 5,		/**< with blocks: what lies below them too */
	BTRKIT_DUMP_DFS = 1 << 6,		/**< depth first; else breadth first: nodes, then leaves */
	BTRKIT_DUMP_HIDE_NAMES = 1 << 7,
	BTRKIT_DUMP_CSUM_HEADERS = 1 << 8,
	BTRKIT_DUMP_CSUM_ITEMS = 1 << 9
};

/** What to dump. Initialise with BTRKIT_DUMP_OPTIONS_INIT, which means everything. Since: 0.1 */
struct btrkit_dump_options {
	unsigned flags;			/**< BTRKIT_DUMP_*; unknown ones are refused */
	const uint64_t *trees;		/**< only the trees with these objectids */
	size_t num_trees;
	const uint64_t *blocks;		/**< only the blocks with these logical addresses */
	size_t num_blocks;
};

#define BTRKIT_DUMP_OPTIONS_INIT { 0, NULL, 0, NULL, 0 }

/**
 * Prints trees.
 *
 * @param opts	may be NULL: everything
 * An item that contradicts the format is shown as far as it can be, and the dump goes on; it is then a failure all the
 * same, told when all else has been written.
 *
 * @return 0; -ENOENT: no such tree; -EUCLEAN, -EIO, -ENODATA: what was met first, after everything before it was
 *	   written; -EINVAL for bad options; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_tree(struct btrkit_fs *fs, const struct btrkit_dump_options *opts, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The objectid of a tree by its name (`extent`, `EXTENT_TREE`, `root`, ...) in any case, or by its number.
 *
 * @return 0 or -ENOENT
 * Since: 0.1
 */
int btrkit_tree_by_name(const char *name, uint64_t *ret) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
