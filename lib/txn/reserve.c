// SPDX-License-Identifier: LGPL-2.1-or-later
/* Room for the blocks of a transaction is made sure of beforehand: inside an edit or a commit it is too late. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/space/chunk.h"
#include "lib/txn/delayed.h"
#include "lib/txn/refs.h"
#include "lib/txn/txn.h"

/* Changes that a commit makes of itself: quotas, a chunk. */
#define CHANGES_OF_A_COMMIT 8u

#define GLOBAL_RESERVE_MAX (512ull << 20)

/* So many times a chunk must be free for it to be one of plenty. */
#define PLENTY 8u

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

/* Data that goes takes its checksums along, which may split an item, and that a leaf if it is full: but few twice. */
static int csum_blocks(struct btrkit_txn *txn, uint64_t data, uint64_t *sum, struct btrkit_error *err)
{
	const uint64_t room = leaf_room(txn->fs->super.nodesize), before = *sum;
	int ret = copies(txn, OID_CSUM_TREE, data, sum, err);
	const uint64_t splits = 2 * (*sum - before) + data * 64 / room + 2;

	*sum += data < splits ? data : splits;
	return ret;
}

/*
 * How many blocks the commit will take at the most, if @blocks more are copied before it. Each block that comes and
 * each that goes changes an extent's item and the free space; what is copied for that comes and goes too, mostly side
 * by side.
 */
static int blocks_of_commit(struct btrkit_txn *txn, uint64_t blocks, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t room = leaf_room(txn->fs->super.nodesize), groups = space_num_groups(txn->space);
	const struct ticket_alone *alone = &txn->delayed->tickets.alone;
	const uint64_t extents = refs_pending(txn->refs) + alone->refs + 2 * blocks + CHANGES_OF_A_COMMIT;
	const uint64_t data = refs_pending_data(txn->refs) + alone->data;
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
	if (!r && data)
		r = csum_blocks(txn, data, &sum, err);
	if (r)
		return r;
	/* An extent's item and its free space take fewer bytes than 128, and leaves may be half full. */
	*ret = sum + extents * 256 / room + CHANGES_OF_A_COMMIT;
	return 0;
}

static int add_chunk(struct btrkit_txn *txn, uint64_t type, bool of_plenty, struct btrkit_error *err)
{
	struct chunk_plan plan;
	struct space_group *g;
	int ret = chunk_plan(txn->space, type, &plan, err);

	if (!ret && of_plenty && plan.unused / PLENTY < plan.length)
		ret = -ENOSPC;
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

	return ret || pieces >= need ? ret : add_chunk(txn, BG_SYSTEM, false, err);
}

/* Sees to it that @need blocks are free in groups of metadata. */
static int make_room(struct btrkit_txn *txn, uint64_t need, enum txn_chunks chunks, struct btrkit_error *err)
{
	uint64_t pieces;
	int ret;

	for (;;) {
		ret = count(txn, BG_METADATA, need, &pieces, err);
		if (ret || pieces >= need)
			return ret;
		ret = chunks == TXN_NO_CHUNKS ? -ENOSPC : reserve_system(txn, err);
		if (!ret)
			ret = add_chunk(txn, BG_METADATA, chunks == TXN_CHUNKS_OF_PLENTY, err);
		if (ret == -ENOSPC && !txn->failed)
			return err_set(err, BTRKIT_NO_SPACE,
				       "%" PRIu64 " tree blocks may be needed, %" PRIu64
				       " are free, and no device has room for more",
				       need, pieces);
		if (ret)
			return ret;
	}
}

int txn_reserve(struct btrkit_txn *txn, uint64_t blocks, struct btrkit_error *err)
{
	uint64_t need;
	int ret;

	ret = blocks_of_commit(txn, blocks, &need, err);
	return ret ? ret : make_room(txn, need + blocks, TXN_CHUNKS, err);
}

/*
 * How many blocks changes of items come to at the most, in all trees that are open: each copies a path and may split a
 * leaf, but there are only so many, and none is copied twice; and what comes fills leaves at least by half.
 */
static uint64_t blocks_of_items(const struct btrkit_txn *txn, const struct ticket_amount *all)
{
	const uint64_t room = leaf_room(txn->fs->super.nodesize), items = (uint64_t)all->items;
	const uint64_t fill = 2 * (uint64_t)all->bytes / room + 1;
	uint64_t sum = 0, splits = 0;

	for (const struct delayed_tree *t = txn->delayed->list; t; t = t->next) {
		const struct edit_tree *e = t->edit;
		uint64_t blocks, old, levels;

		if (t->deleted)
			continue;
		blocks = t->blocks + (uint64_t)(e->blocks > 0 ? e->blocks : 0) + 1;
		old = blocks > e->private ? blocks - e->private : 0;
		levels = e->c.root.level + 1u;

		sum += (items * levels < old ? items * levels : old) + 2 * levels;
		splits += blocks;
	}
	/* Only what comes splits leaves, and a leaf has at least room for one item. */
	if (splits > items)
		splits = items;
	if (splits > (uint64_t)all->bytes / sizeof(struct disk_item))
		splits = (uint64_t)all->bytes / sizeof(struct disk_item);
	return sum + splits + fill + (splits + fill) / 64 + 8;
}

/* What Linux keeps for itself, and needs to remove anything from a full filesystem: see its global block reserve. */
static int global_reserve(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err)
{
	static const uint64_t trees[] = { OID_EXTENT_TREE, OID_CSUM_TREE, OID_FREE_SPACE_TREE, OID_BLOCK_GROUP_TREE };
	const uint64_t unit = (uint64_t)txn->fs->super.nodesize * LEVELS_MAX * 2;
	const unsigned of_an_unlink = 6;
	struct tree_root root;
	struct root_item item;
	uint64_t used, least, n = of_an_unlink + 1;

	used = txn->fs->super.nodesize;
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		int r = fs_find_root(txn->fs, trees[i], &root, &item, err);

		if (r == -ENOENT)
			continue;
		if (r)
			return r;
		used += item.bytes_used;
		n++;
	}
	least = n * unit + of_an_unlink * unit * (txn->free_space_tree ? 2 : 1);
	used = used > least ? used : least;
	*ret = used < GLOBAL_RESERVE_MAX ? used : GLOBAL_RESERVE_MAX;
	return 0;
}

/* Whether what Linux keeps stays free behind all that is reserved. */
static int leave_reserve(struct btrkit_txn *txn, const struct ticket_amount *all, enum txn_chunks chunks,
			 struct btrkit_error *err)
{
	const uint64_t nodesize = txn->fs->super.nodesize;
	const uint64_t pinned = space_pinned(txn->space, BG_METADATA) / nodesize;
	uint64_t keep, need;
	int ret = global_reserve(txn, &keep, err);

	if (ret)
		return ret;
	need = keep / nodesize + (uint64_t)all->bytes / leaf_room(txn->fs->super.nodesize) + 1;
	return need > pinned ? make_room(txn, need - pinned, chunks, err) : 0;
}

int txn_reserve_items(struct btrkit_txn *txn, const struct ticket_amount *all, bool removes, enum txn_chunks chunks,
		      struct btrkit_error *err)
{
	const uint64_t blocks = blocks_of_items(txn, all) + txn->delayed->tickets.alone.blocks;
	uint64_t need;
	int ret;

	ret = blocks_of_commit(txn, blocks, &need, err);
	if (!ret)
		ret = make_room(txn, need + blocks, chunks, err);
	return ret || removes ? ret : leave_reserve(txn, all, chunks, err);
}

int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err)
{
	uint64_t need;
	int ret = blocks_of_commit(txn, CHANGES_OF_A_COMMIT, &need, err);

	/* What describes it needs room itself. */
	if (!ret)
		ret = make_room(txn, need + CHANGES_OF_A_COMMIT, TXN_NO_CHUNKS, err);
	if (!ret)
		ret = reserve_system(txn, err);
	return ret ? ret : add_chunk(txn, BG_DATA, false, err);
}
