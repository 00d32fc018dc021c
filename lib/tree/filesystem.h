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
	uint64_t id; /* objectid: what its blocks are owned by */
	/* Offset of its ROOT_ITEM key: a snapshot's generation; of a relocation tree the tree that is relocated. */
	uint64_t key_offset;
	uint64_t bytenr;
	uint64_t generation;
	uint8_t level;
};

#define BACKUP_TREES 4 /* that backup roots name besides the root and the chunk tree */

struct btrkit_fs {
	struct super super;
	unsigned super_mirror; /* which copy is used: 0 is the primary */
	bool writable;	       /* opened for writing */
	struct item_ctx items; /* owner 0 */
	struct node_judge judge;
	uint8_t (*seeds)[UUID_SIZE]; /* what the judge admits besides, or NULL */
	struct volume *volume;
	struct stock stock; /* memory that goes from one use to another within a transaction */
	struct slabs slabs;
	struct node_cache *cache;
	struct tree_root root_tree, chunk_tree; /* as they are now: in a transaction its own */
	/* With BTRKIT_OPEN_BACKUP: trees that the slot names, which the root tree should name too. */
	struct tree_root backup_roots[BACKUP_TREES];
	size_t num_backup_roots;
	/* With BTRKIT_OPEN_PARTIAL: the first that kept chunks and devices from being read, or 0. */
	int damage;
	struct btrkit_error damage_error;
	struct overlay *overlay;		/* of the open transaction, or NULL */
	struct writer *writer;			/* of a handle that has written, or NULL */
	void (*writer_destroy)(struct writer *writer);
};

/* Closes the filesystem, but not its devices, which become the caller's again. NULL is allowed. */
struct btrkit_fs *fs_release(struct btrkit_fs *fs);

/*
 * The tree with the key (@id ROOT_ITEM *), of several the one with the highest offset. @item may be NULL. The root
 * and the chunk tree have no such item: they are in struct btrkit_fs.
 * @return 0; -ENOENT: no such tree; <0
 */
int fs_find_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same of a tree that need not be there. @return 0; 1: no such tree, of which nothing is told; <0 */
int fs_try_root(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same by a root tree of before, whatever a transaction has made of the tree since. */
int fs_find_root_in(struct btrkit_fs *fs, const struct tree_root *root_tree, uint64_t id, struct tree_root *ret,
		    struct root_item *item, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/*
 * Any tree by its objectid, the root and the chunk tree too: these have no root item, so that @item, which may be NULL,
 * is all zero. @return as fs_find_root()
 */
int fs_find_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		 struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The same of one that need not be there. @return as fs_try_root() */
int fs_try_tree(struct btrkit_fs *fs, uint64_t id, struct tree_root *ret, struct root_item *item,
		struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The UUID that the headers of all blocks carry besides the filesystem's. @return 0; <0 */
int fs_chunk_tree_uuid(struct btrkit_fs *fs, uint8_t uuid[16], struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* The tree that a decoded root item names. */
struct tree_root tree_root_of(const struct btrkit_key *key, const struct root_item *item);
/* The same as it is now: root items of trees that a transaction changes are brought up to date by its commit. */
struct tree_root fs_root_of(const struct btrkit_fs *fs, const struct btrkit_key *key, const struct root_item *item);

/*
 * For what needs the extent tree: references to what a transaction changes get there by its commit.
 * @return 0; -EBUSY: a transaction is open
 */
int fs_check_committed(const struct btrkit_fs *fs, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
