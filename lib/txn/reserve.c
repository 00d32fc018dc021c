// SPDX-License-Identifier: LGPL-2.1-or-later
/* Room for the blocks of a transaction is made sure of beforehand: inside an edit or a commit it is too late. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/space/chunk.h"
#include "lib/txn/refs.h"
#include "lib/txn/txn.h"

/* Changes that a commit makes of itself: quotas, a chunk. */
#define CHANGES_OF_A_COMMIT 8u

/*
 * How many blocks of a tree that many changes copy at the most: a path for each, but no block twice.
 */
static int copies(struct btrkit_txn *txn, uint64_t id, uint64_t changes, uint64_t *sum, struct btrkit_error *err)
{
	struct btrkit_fs *fs = txn->fs;
	struct tree_root root = fs->root_tree;
	struct root_item item = { .bytes_used = UINT64_MAX };
	int ret = id == OID_ROOT_TREE ? 0 : fs_find_root(fs, id, &root, &item, err);
	uint64_t blocks, path = root.level + 1u;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	/* A tree of one level is one block, whatever its item says. */
	blocks = root.level ? item.bytes_used / fs->super.nodesize + 1 : 1;
	*sum += changes > blocks / path ? blocks : changes * path;
	return 0;
}

/*
 * How many blocks the commit will take at the most, if @blocks more are copied before it. Each block that comes and
 * each that goes changes an extent's item and the free space; what is copied for that comes and goes too, mostly side
 * by side.
 */
static int blocks_of_commit(struct btrkit_txn *txn, uint64_t blocks, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t room = leaf_room(txn->fs->super.nodesize), groups = space_num_groups(txn->space);
	const uint64_t extents = refs_pending(txn->refs) + 2 * blocks + CHANGES_OF_A_COMMIT;
	uint64_t sum = 0, roots = CHANGES_OF_A_COMMIT;
	int r;

	for (const struct edit_tree *t = txn->overlay->trees; t; t = t->next)
		roots++;
	r = copies(txn, OID_EXTENT_TREE, extents, &sum, err);
	if (!r)
		r = copies(txn, OID_FREE_SPACE_TREE, extents, &sum, err);
	if (!r)
		r = copies(txn, OID_BLOCK_GROUP_TREE, extents < groups ? extents : groups, &sum, err);
	if (!r)
		r = copies(txn, OID_ROOT_TREE, roots, &sum, err);
	if (!r)
		r = copies(txn, OID_DEV_TREE, CHANGES_OF_A_COMMIT, &sum, err);
	if (r)
		return r;
	/* An extent's item and its free space take fewer bytes than 128, and leaves may be half full. */
	*ret = sum + extents * 256 / room + CHANGES_OF_A_COMMIT;
	return 0;
}

static int add_chunk(struct btrkit_txn *txn, uint64_t type, struct btrkit_error *err)
{
	struct chunk_plan plan;
	struct space_group *g;
	int ret = chunk_plan(txn->space, type, &plan, err);

	if (ret)
		return ret;
	ret = chunk_create(txn->space, &plan, &txn->super, &g, err);
	if (ret)
		txn->failed = true;
	return ret;
}

/* Blocks that groups of a type still have; stops counting at @enough. */
static int count(struct btrkit_txn *txn, uint64_t type, uint64_t enough, uint64_t *ret, struct btrkit_error *err)
{
	return space_count(txn->space, type, txn->fs->super.nodesize, enough, ret, err);
}

/* A new chunk changes the chunk tree, whose blocks lie in chunks of their own. */
static int reserve_system(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t need = 4 * (txn->fs->chunk_tree.level + 1u);
	uint64_t pieces;
	int ret = count(txn, BG_SYSTEM, need, &pieces, err);

	return ret || pieces >= need ? ret : add_chunk(txn, BG_SYSTEM, err);
}

int txn_reserve(struct btrkit_txn *txn, uint64_t blocks, struct btrkit_error *err)
{
	uint64_t need, pieces;
	int ret;

	ret = blocks_of_commit(txn, blocks, &need, err);
	if (ret)
		return ret;
	need += blocks;
	for (;;) {
		ret = count(txn, BG_METADATA, need, &pieces, err);
		if (ret || pieces >= need)
			return ret;
		ret = reserve_system(txn, err);
		if (!ret)
			ret = add_chunk(txn, BG_METADATA, err);
		if (ret == -ENOSPC && !txn->failed)
			return err_set(err, BTRKIT_NO_SPACE,
				       "%" PRIu64 " tree blocks may be needed, %" PRIu64
				       " are free, and no device has room for more",
				       need, pieces);
		if (ret)
			return ret;
	}
}
