/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_H
#define BTRKIT_DUMP_H

/**
 * @file
 * Superblocks and trees, as text in the words of btrfs-progs or as JSON Lines by a schema that is installed beside.
 */

#include <btrkit/device.h>
#include <btrkit/filesystem.h>

BTRKIT_BEGIN_DECLS

/** Flags of btrkit_dump_super(). Since: 0.1 */
enum btrkit_dump_super_flags {
	BTRKIT_DUMP_SUPER_FULL = 1 << 0,	/**< sys_chunk_array and backup roots too */
	BTRKIT_DUMP_SUPER_FORCE = 1 << 1,	/**< even without the magic */
	BTRKIT_DUMP_SUPER_HIDE_NAMES = 1 << 2,	/**< HIDDEN in the place of the label */
	BTRKIT_DUMP_SUPER_MORE = 1 << 3		/**< JSON: without the header, since lines stand before this */
};

/**
 * Prints the superblock at byte @p offset of a device, as it is: a bad checksum is said in its place and is no
 * failure. On a zoned device the place of a copy that btrkit_super_offset() tells stands for the newest in its log.
 *
 * @param flags	BTRKIT_DUMP_SUPER_*
 * @param format	text or JSON: a header and an object
 * @param device	open; it need not belong to a filesystem that can be opened
 * @return 0; -EINVAL: unknown flag or format; -EMEDIUMTYPE: no magic there, and not forced; -ENODATA: the device ends
 *	   before; -ENOENT: it is zoned, and ends before the log of that copy; -EUCLEAN: zones that no log leaves
 *	   behind; -EIO; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_super(struct btrkit_io *device, uint64_t offset, unsigned flags, enum btrkit_format format,
		      btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Where copy @p mirror (0 to 2) of the superblock lies on a device that is not zoned; UINT64_MAX for other numbers.
 *
 * @return bytes from the start of the device
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

/** Keys, both ends included. Never grows. Since: 0.1 */
struct btrkit_dump_range {
	struct btrkit_key min, max;
};

/**
 * Reads a range of keys as people write it: `MIN..MAX`, each of them `OBJECTID,TYPE,OFFSET`, from which parts may be
 * missing at the end or be empty; missing parts of MIN are the lowest there are, those of MAX the highest, and a
 * whole side may be missing too. Without `..` it is all keys that begin so: `256` all of an objectid,
 * `256,INODE_ITEM` all of a type. Numbers are decimal, hexadecimal or octal, and below zero as the dump has them; an
 * objectid and a type may be given by the name that the dump has for it, in any case. In place of commas blanks will
 * do, and parentheses are passed over, so that a key can be taken from a dump.
 *
 * @param text	terminated
 * @return 0; -EINVAL: it is none, or MIN is above MAX
 * Since: 0.1
 */
int btrkit_dump_range_parse(const char *text, struct btrkit_dump_range *ret) BTRKIT_MUST_CHECK;

/** The type of an item by the dump's name for it, in any case, or by its number. @return 0; -ENOENT. Since: 0.1 */
int btrkit_item_type_parse(const char *name, uint8_t *ret) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_dump_select: which of its numbers count. Since: 0.1 */
enum btrkit_dump_select_flags {
	BTRKIT_DUMP_BY_INODE = 1 << 0,
	BTRKIT_DUMP_BY_BYTENR = 1 << 1,
	BTRKIT_DUMP_BY_GENERATION = 1 << 2,
	BTRKIT_DUMP_BY_LEVEL = 1 << 3,
	/**
	 * With an inode or a path: besides, what other trees have of its data extents. That is items of the checksum
	 * tree that have checksums of them, and all items of the extent tree about them.
	 */
	BTRKIT_DUMP_WITH_EXTENTS = 1 << 4
};

/**
 * Which part of the trees is dumped: what fulfils all that is asked for. Parts of trees that can have nothing of it are
 * not read. Initialise with BTRKIT_DUMP_SELECT_INIT, which means everything.
 *
 * Keys, types, an inode or a path choose items: then only leaves that have any of them are shown, with their header and
 * these items. Addresses, generations and levels choose blocks. Trees of which nothing is shown have no heading.
 *
 * Since: 0.1
 */
struct btrkit_dump_select {
	unsigned flags;		/**< BTRKIT_DUMP_BY_*, BTRKIT_DUMP_WITH_EXTENTS; unknown ones are refused */
	const struct btrkit_dump_range *ranges;	/**< items with keys in any of these; none: all */
	size_t num_ranges;
	const uint8_t *types;			/**< items of these types; none: all */
	size_t num_types;
	/** Items with this objectid, in subvolumes and their logs unless other trees are asked for by number. */
	uint64_t inode;
	/** The items of this file, in its subvolume; NULL: none. Not together with an inode or with trees. */
	const char *path;
	uint64_t subvolume;			/**< that the path begins in; 0: the top level */
	uint64_t min_bytenr, max_bytenr;	/**< logical addresses of blocks */
	uint64_t min_generation, max_generation;	/**< of blocks */
	unsigned min_level, max_level;		/**< of blocks */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_DUMP_SELECT_INIT BTRKIT_ZEROS

/** What to dump. Initialise with BTRKIT_DUMP_OPTIONS_INIT, which means everything. Since: 0.1 */
struct btrkit_dump_options {
	unsigned flags;			/**< BTRKIT_DUMP_*; unknown ones are refused */
	const uint64_t *trees;		/**< only the trees with these objectids */
	size_t num_trees;
	const uint64_t *blocks;		/**< only the blocks with these logical addresses */
	size_t num_blocks;
	const struct btrkit_dump_select *select;	/**< NULL: all of them */
	enum btrkit_format format;
	/**
	 * With JSON: only these members, with commas between, those inside others by their path (`key.objectid`); lines
	 * of which nothing is left do not come, but the first always does. NULL: all.
	 */
	const char *fields;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_DUMP_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Every member that lines of JSON may have, by its path, in the order of the bytes.
 *
 * @param count	gets how many there are
 * @return an array of @p count, a constant of the library
 * Since: 0.1
 */
const char *const *btrkit_dump_fields(size_t *count);

/**
 * Prints trees.
 *
 * Leaves are read and rendered by several threads; @p write is called by one at a time, not always by that of the
 * caller, with what comes next. At the most 64 MiB of memory are taken besides the cache of tree blocks.
 *
 * A block of which no copy is good is told in its place, with what is wrong with each, and an item that contradicts the
 * format is shown as far as it can be; the dump goes on. Either is a failure all the same, told when all else has been
 * written. What a subvolume that is being deleted has lost already is shown as far as it is still there, and else is no
 * failure.
 *
 * @param opts	may be NULL: everything
 * @return 0; -ENOENT: no such tree, or no such path; -EUCLEAN, -EIO, -ENODATA: what was met first, after everything
 *	   that can be read was written; -EINVAL for bad options; -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_tree(struct btrkit_fs *fs, const struct btrkit_dump_options *opts, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_dump_scan_options. Since: 0.1 */
enum btrkit_dump_scan_flags {
	BTRKIT_DUMP_SCAN_BLOCKS = 1 << 0	/**< each block is dumped, behind the line about where it is */
};

/** How devices are scanned. Initialise with BTRKIT_DUMP_SCAN_OPTIONS_INIT. Since: 0.1 */
struct btrkit_dump_scan_options {
	unsigned flags;		/**< BTRKIT_DUMP_SCAN_*; unknown ones are refused */
	/** Called now and then with bytes done and to do, by any thread; another result than 0 ends it. May be NULL. */
	btrkit_progress_fn progress;
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_DUMP_SCAN_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Looks for tree blocks of the filesystem on all of its devices, from end to end and without any tree, by the UUID in
 * their headers and their checksums: also for those that nothing leads to any more. The filesystem may be opened with
 * BTRKIT_OPEN_PARTIAL. Each has a line, in the order of devices and of places on them: where it lies, and its address,
 * generation, owner, level, and number of items.
 *
 * What cannot be read of a device is told in its place and is a failure at the end.
 *
 * @param opts	may be NULL. Of its flags those hold that say what of a block is shown; trees are owners; of what is
 *		selected items, an inode, addresses, generations and levels
 * @param scan	may be NULL
 * @param write	called as by btrkit_dump_tree()
 * @return 0; -EINVAL for bad options; -EIO, -ENODATA: what was met first; -ENOMEM; or what @p write or the progress
 *	   function returned
 * Since: 0.1
 */
int btrkit_dump_scan(struct btrkit_fs *fs, const struct btrkit_dump_options *opts,
		     const struct btrkit_dump_scan_options *scan, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints the bytes of a tree block in hexadecimal, beside each field what it says, and behind the bytes of each item
 * what the dump shows of it. The block may be damaged: then the first line says how.
 *
 * @param bytenr	its logical address
 * @param copy		0 is the first
 * @param format	text or JSON: a line for the block, one for each field, and one for what each item has
 * @return 0; -ENOENT: there is no such copy; -EINVAL: an address that is no multiple of the sector size; -EUCLEAN: no
 *	   chunk has it; -EOPNOTSUPP: it lies on several strips; -EIO, -ENODATA, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_raw(struct btrkit_fs *fs, uint64_t bytenr, unsigned copy, enum btrkit_format format,
		    btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * The objectid of a tree by its name (`extent`, `EXTENT_TREE`, `root`, ...) in any case, or by its number.
 *
 * @return 0 or -ENOENT
 * Since: 0.1
 */
int btrkit_tree_parse(const char *name, uint64_t *ret) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
