/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_DUMP_H
#define BTRKIT_DUMP_H

/**
 * @file
 * Dumping superblocks and trees, as text in the format of btrfs-progs, or as JSON Lines with an installed schema.
 */

#include <btrkit/device.h>
#include <btrkit/filesystem.h>
#include <btrkit/inode.h>

BTRKIT_BEGIN_DECLS

/** Flags of btrkit_dump_super(). Since: 0.1 */
enum btrkit_dump_super_flags {
	BTRKIT_DUMP_SUPER_FULL = 1 << 0,	/**< also sys_chunk_array and backup roots */
	BTRKIT_DUMP_SUPER_FORCE = 1 << 1,	/**< even if the magic is missing */
	BTRKIT_DUMP_SUPER_HIDE_NAMES = 1 << 2,	/**< print HIDDEN instead of the label */
	BTRKIT_DUMP_SUPER_MORE = 1 << 3		/**< JSON: omit the header, because lines were printed before */
};

/**
 * Prints the superblock at byte @p offset of a device as it is: a bad checksum is shown, and is no failure. On a zoned
 * device, the offset of a copy as returned by btrkit_super_offset() selects the newest superblock in the log of that
 * copy.
 *
 * @param device	an open device; it need not belong to a filesystem that can be opened
 * @param flags	enum btrkit_dump_super_flags
 * @param format	text, or JSON: a header and one object
 * @return 0; -EINVAL: unknown flag or format; -EMEDIUMTYPE: no magic, without BTRKIT_DUMP_SUPER_FORCE; -ENXIO: the
 *	   device ends earlier; -ENOENT: a zoned device that ends before the log of that copy; -EUCLEAN: the zones of
 *	   the log contradict each other; -EIO; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_super(struct btrkit_io *device, uint64_t offset, unsigned flags, enum btrkit_format format,
		      btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Returns the offset of superblock copy @p mirror (0 to 2) on a device that is not zoned.
 *
 * @return bytes from the start of the device; UINT64_MAX: no such copy
 * Since: 0.1
 */
uint64_t btrkit_super_offset(unsigned mirror);

/** Flags of struct btrkit_dump_options. The first five are options of `btrfs inspect-internal dump-tree`. Since: 0.1 */
enum btrkit_dump_flags {
	BTRKIT_DUMP_EXTENTS = 1 << 0,		/**< -e: extent and device trees only */
	BTRKIT_DUMP_DEVICES = 1 << 1,		/**< -d: root, chunk and device trees only */
	BTRKIT_DUMP_ROOTS = 1 << 2,		/**< -r: one line for each root */
	BTRKIT_DUMP_BACKUPS = 1 << 3,		/**< -R: the same, and the backup roots */
	BTRKIT_DUMP_UUIDS = 1 << 4,		/**< -u: the UUID tree only */
	BTRKIT_DUMP_FOLLOW = 1 << 5,		/**< with blocks: everything below them too */
	BTRKIT_DUMP_DFS = 1 << 6,		/**< depth first; otherwise breadth first: nodes, then leaves */
	BTRKIT_DUMP_HIDE_NAMES = 1 << 7,
	BTRKIT_DUMP_CSUM_HEADERS = 1 << 8,
	BTRKIT_DUMP_CSUM_ITEMS = 1 << 9,
	/**
	 * Text as btrfs-progs 6.19 prints it: without the encryption of file extents, and "textent owner" for the
	 * owner of a data extent. Refused with JSON. Since: 0.2
	 */
	BTRKIT_DUMP_COMPAT_6_19 = 1 << 10
};

/** A range of keys, both ends included. Never grows. Since: 0.1 */
struct btrkit_dump_range {
	struct btrkit_key min, max;
};

/**
 * Parses a range of keys: `MIN..MAX`, where both are `OBJECTID,TYPE,OFFSET`.
 *
 * Trailing parts may be missing, and parts may be empty: they are the lowest possible values of MIN and the highest of
 * MAX. MIN or MAX may be missing altogether. Without `..`, the range has all keys that begin with the given parts:
 * `256` has all keys of an objectid, and `256,INODE_ITEM` all of a type. Numbers are decimal, hexadecimal or octal, or
 * negative as in dumps; objectids and types may also be given by their names in dumps, in any case. Blanks may replace
 * commas, and parentheses are ignored, so that keys can be copied from a dump.
 *
 * @param text	terminated
 * @param ret	receives the range
 * @return 0; -EINVAL: not a range, or MIN is greater than MAX
 * Since: 0.1
 */
int btrkit_dump_range_parse(const char *text, struct btrkit_dump_range *ret) BTRKIT_MUST_CHECK;

/**
 * Returns the name of an item type in dumps.
 *
 * @param objectid	of the key: some types have another meaning with special objectids
 * @param type	the type
 * @return a constant string; NULL: unknown type
 * Since: 0.2
 */
const char *btrkit_item_type_name(uint64_t objectid, uint8_t type);

/** Parses an item type: its name in dumps, in any case, or its number. @return 0; -ENOENT. Since: 0.1 */
int btrkit_item_type_parse(const char *name, uint8_t *ret) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_dump_select: which of its numbers apply. Since: 0.1 */
enum btrkit_dump_select_flags {
	BTRKIT_DUMP_BY_INODE = 1 << 0,
	BTRKIT_DUMP_BY_BYTENR = 1 << 1,
	BTRKIT_DUMP_BY_GENERATION = 1 << 2,
	BTRKIT_DUMP_BY_LEVEL = 1 << 3,
	/**
	 * With an inode or a path: also print what other trees say about its data extents, namely their checksums and
	 * all their items in the extent tree.
	 */
	BTRKIT_DUMP_WITH_EXTENTS = 1 << 4
};

/**
 * Selects the parts of trees that are dumped: those that match all given criteria. Parts that cannot match are not
 * read. Initialise with BTRKIT_DUMP_SELECT_INIT, which selects everything.
 *
 * Keys, types, an inode or a path select items: only leaves with such items are shown, with their headers and these
 * items. Addresses, generations and levels select blocks. Trees without a match have no heading.
 *
 * Since: 0.1
 */
struct btrkit_dump_select {
	unsigned flags;		/**< enum btrkit_dump_select_flags; unknown ones are refused */
	const struct btrkit_dump_range *ranges;	/**< items with keys in any of these; none: all */
	size_t num_ranges;
	const uint8_t *types;			/**< items of any of these types; none: all */
	size_t num_types;
	/** Items with this objectid, in subvolumes and their logs unless trees are given by number. */
	uint64_t inode;
	/** Items of the file at this path of a subvolume; NULL: none. Excludes an inode and trees. */
	const char *path;
	uint64_t subvolume;			/**< in which the path starts; 0: the top level */
	uint64_t min_bytenr, max_bytenr;	/**< logical addresses of blocks */
	uint64_t min_generation, max_generation;	/**< of blocks */
	unsigned min_level, max_level;		/**< of blocks */
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_DUMP_SELECT_INIT BTRKIT_ZEROS

/** Options of btrkit_dump_tree(). Initialise with BTRKIT_DUMP_OPTIONS_INIT, which dumps everything. Since: 0.1 */
struct btrkit_dump_options {
	unsigned flags;			/**< enum btrkit_dump_flags; unknown ones are refused */
	const uint64_t *trees;		/**< only trees with these objectids */
	size_t num_trees;
	const uint64_t *blocks;		/**< only blocks at these logical addresses */
	size_t num_blocks;
	const struct btrkit_dump_select *select;	/**< NULL: everything */
	enum btrkit_format format;
	/**
	 * JSON only: print only these members, separated by commas; nested ones by their path (`key.objectid`). Lines
	 * without any of them are omitted, except the first. NULL: all members.
	 */
	const char *fields;
	/**
	 * Called in the order of the output, for each part of it that is missing, by one thread at a time. Such damage
	 * is then no failure; an item that is invalid, but shown, still is. Returns 0, or a negative errno that stops
	 * the work. NULL: the first damage is a failure, in the end. Since: 0.2
	 */
	btrkit_lost_fn lost;
	void *lost_ctx;
	uint64_t reserved[2];	/**< 0 */
};

#define BTRKIT_DUMP_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Returns the paths of all members of the JSON lines, in byte order.
 *
 * @param count	receives the number of members
 * @return a constant array of @p count strings
 * Since: 0.1
 */
const char *const *btrkit_dump_fields(size_t *count);

/**
 * Prints trees.
 *
 * Leaves are read and formatted by several threads. @p write is called by one thread at a time, not always the
 * caller's, and receives the output in order. At most 64 MiB of memory are used in addition to the tree block cache.
 *
 * A block without a good copy is reported in its place, with the reason for each copy, and a corrupt item is shown as
 * far as possible; the dump continues. Either makes the call fail after everything else was printed. Blocks that a
 * subvolume that is being deleted has lost already are no failure.
 *
 * @return 0; -ENOENT: no such tree or path; -EUCLEAN, -EIO, -ENXIO: the first failure, after everything readable was
 *	   printed; -EINVAL: invalid options; -ENOMEM; or what @p write or the callback for what is missing returned
 * Since: 0.1
 */
int btrkit_dump_tree(struct btrkit_fs *fs, const struct btrkit_dump_options *opts, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/** Flags of struct btrkit_dump_scan_options. Since: 0.1 */
enum btrkit_dump_scan_flags {
	BTRKIT_DUMP_SCAN_BLOCKS = 1 << 0	/**< dump each block after the line that describes it */
};

/** Options of btrkit_dump_scan(). Initialise with BTRKIT_DUMP_SCAN_OPTIONS_INIT. Since: 0.1 */
struct btrkit_dump_scan_options {
	unsigned flags;		/**< enum btrkit_dump_scan_flags; unknown ones are refused */
	/**
	 * Reports progress in bytes, from one thread at a time, not always the caller's. A value other than 0, a
	 * negative errno, stops the work. May be NULL.
	 */
	btrkit_progress_fn progress;
	void *progress_ctx;
	uint64_t reserved[4];	/**< 0 */
};

#define BTRKIT_DUMP_SCAN_OPTIONS_INIT BTRKIT_ZEROS

/**
 * Scans all devices for tree blocks of the filesystem, by the UUID in their headers and their checksums, without using
 * any tree: blocks that nothing refers to are found too. The filesystem may have been opened with BTRKIT_OPEN_PARTIAL.
 * Each block has a line with its device and offset, address, generation, owner, level and number of items, in the order
 * of devices and offsets.
 *
 * What cannot be read of a device is reported in its place, and makes the call fail at the end.
 *
 * @param opts	of its flags, those that affect how a block is shown; trees are owners of blocks; of the selection,
 *		items, an inode, addresses, generations and levels. NULL: all defaults
 * @param scan	options; NULL: all defaults
 * @param write	called as by btrkit_dump_tree()
 * @return 0; -EINVAL: invalid options; -EIO, -ENXIO: the first failure; -ENOMEM; or what @p write or the progress
 *	   callback returned
 * Since: 0.1
 */
int btrkit_dump_scan(struct btrkit_fs *fs, const struct btrkit_dump_options *opts,
		     const struct btrkit_dump_scan_options *scan, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints the contents of one item, for instance of btrkit_diff(): as text in the lines of dump-tree, or in JSON as one
 * object without a header. Contents that are not valid are printed as far as possible.
 *
 * @param tree	objectid of the tree that it belongs to
 * @param key	its key
 * @param data	its contents, @p size bytes
 * @param flags	BTRKIT_DUMP_HIDE_NAMES or 0
 * @return 0; -EINVAL: unknown flags or format, or more bytes than a block has; -ENOMEM; or what @p write returned
 * Since: 0.2
 */
int btrkit_dump_item(struct btrkit_fs *fs, uint64_t tree, const struct btrkit_key *key, const void *data, size_t size,
		     unsigned flags, enum btrkit_format format, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Prints a tree block in hexadecimal, with the value of each field beside its bytes, and the contents of each item
 * after its bytes. If the block is corrupt, the first line says why.
 *
 * @param bytenr	its logical address
 * @param copy	number of the copy, from 0
 * @param format	text, or JSON: a line for the block, one for each field, and one for the contents of each item
 * @return 0; -ENOENT: no such copy; -EINVAL: not a multiple of the sector size; -EUCLEAN: no chunk contains the
 *	   address; -EOPNOTSUPP: the block spans several strips; -EIO, -ENXIO, -ENOMEM; or what @p write returned
 * Since: 0.1
 */
int btrkit_dump_raw(struct btrkit_fs *fs, uint64_t bytenr, unsigned copy, enum btrkit_format format,
		    btrkit_write_fn write, void *ctx, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/**
 * Parses a tree: its name (`extent`, `EXTENT_TREE`, `root`, ...), in any case, or its objectid.
 *
 * @param name	terminated
 * @param ret	receives the objectid
 * @return 0; -ENOENT
 * Since: 0.1
 */
int btrkit_tree_parse(const char *name, uint64_t *ret) BTRKIT_MUST_CHECK;

BTRKIT_END_DECLS

#endif
