/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TREE_FILESYSTEM_H
#define BTRKIT_TREE_FILESYSTEM_H

/* The open filesystem: superblock, volume, node cache, roots. */

#include <btrkit/error.h>
#include <btrkit/filesystem.h>

#include "lib/base/uuid.h"
#include "lib/format/item.h"
#include "lib/format/items/root.h"
#include "lib/format/super.h"
#include "lib/tree/node.h"
#include "lib/tree/slab.h"

struct volume;
struct node_cache;
struct overlay;
struct writer;

/* The root of a tree. */
struct tree_root {
	uint64_t id; /* objectid: the owner of its blocks */
	/* Offset of its ROOT_ITEM key: generation of a snapshot, or tree that a relocation tree belongs to. */
	uint64_t key_offset;
	uint64_t bytenr;
	uint64_t generation;
	uint8_t level;
};

#define BACKUP_TREES 4 /* in backup roots, besides the root tree and the chunk tree */

/*
 * What never changes while the filesystem is open, but for a conversion, which no other thread may accompany. A commit
 * replaces struct btrkit_fs's superblock and the context of its items, so they must not be read by a thread that may
 * run at the same time; this may be read by any.
 */
struct geometry {
	uint32_t sectorsize, nodesize;
	const struct csum_kind *csum; /* of blocks and of data */
};

struct btrkit_fs {
	struct geometry geometry;
	struct super super;
	unsigned super_mirror; /* superblock copy in use: 0 is the primary */
	bool writable;	       /* opened for writing */
	bool no_links;	       /* paths do not follow symbolic links */
	bool degraded;	       /* may be written without some of its devices */
	struct item_ctx items; /* owner 0 */
	struct node_rules rules;
	uint8_t (*seeds)[UUID_SIZE]; /* further fsids that @rules accepts, or NULL */
	struct volume *volume;
	struct stock stock; /* memory that is reused for different purposes within a transaction */
	struct slabs slabs;
	struct node_cache *cache;
	struct tree_root root_tree, chunk_tree; /* current roots, also within a transaction */
	/* With BTRKIT_OPEN_BACKUP: trees in the backup slot, which should also be in the root tree. */
	struct tree_root backup_roots[BACKUP_TREES];
	size_t num_backup_roots;
	/* With BTRKIT_OPEN_PARTIAL: the first error of reading chunks and devices, or 0. */
	int damage;
	struct btrkit_error damage_error;
	struct overlay *overlay;		/* of the open transaction, or NULL */
	struct writer *writer;			/* of a handle that was used for writing, or NULL */
	void (*writer_destroy)(struct writer *writer);
	/*
	 * Set while a transaction is open: reads file data that it still has in memory. *@len is reduced to the number
	 * of bytes from @logical on that are either all in memory, and then copied to @buf, or all on the devices.
	 * @return whether they are in memory
	 */
	bool (*unwritten)(const struct btrkit_fs *fs, uint64_t logical, void *buf, size_t *len);
};

/* Closes the filesystem, but not its devices, which the caller owns again. NULL is allowed. */
struct btrkit_fs *fs_release(struct btrkit_fs *fs);

/*
 * Finds the tree with the key (@id ROOT_ITEM *), the one with the highest offset if there are several. @item may be
 * NULL. The root tree and the chunk tree have no such item: they are in struct btrkit_fs.
 * @return 0; -ENOENT: no such tree; <0
 */
int fs_find_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Like fs_find_root(), for a tree that may be absent. @return 0; 1: no such tree, with no error reported; <0 */
int fs_try_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Like fs_try_root(), in an earlier root tree, whatever a transaction has changed since. */
int fs_find_root_in(struct btrkit_fs *fs, const struct tree_root *root_tree, uint64_t id, struct tree_root *ret,
		    struct root_item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Finds any tree by its objectid, including the root tree and the chunk tree. These have no root item, so @item, which
 * may be NULL, is zeroed. @return as fs_find_root()
 */
int fs_find_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Like fs_find_tree(), for a tree that may be absent. @return as fs_try_root() */
int fs_try_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Gets the UUID that is in the headers of all blocks, in addition to the fsid. @return 0; <0 */
int fs_chunk_tree_uuid(struct btrkit_fs *fs, uint8_t uuid[16], struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The tree described by a decoded root item. */
struct tree_root tree_root_of(const struct btrkit_key *key, const struct root_item *item);
/* The current root of that tree: the commit of a transaction updates the root items only at its end. */
struct tree_root fs_root_of(const struct btrkit_fs *fs, const struct btrkit_key *key, const struct root_item *item);

/*
 * For users of the extent tree, which lacks the references that an open transaction has changed until its commit.
 * @return 0; -EBUSY: a transaction is open
 */
int fs_check_committed(const struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
