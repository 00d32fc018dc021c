// SPDX-License-Identifier: LGPL-2.1-or-later
/* Room for the blocks of a transaction is made sure of beforehand: inside an edit or a commit it is too late. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/space/chunk.h"
#include "lib/txn/bound.h"
#include "lib/txn/delayed.h"
#include "lib/txn/txn.h"

#define GLOBAL_RESERVE_MAX (512ull << 20)

/* The most that one step of removing something asks for. */
#define REMOVAL_ITEMS 16
#define REMOVAL_BYTES 512

/* For so many items that are removed a leaf is granted where there is not one for each. */
#define REMOVED_IN_A_LEAF 16

/* Credit of so many leaves is worth no new chunk. */
#define ENOUGH_CREDIT 1024

/* So many times a chunk must be free for it to be one of plenty. */
#define PLENTY 8u

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
	if (ret) {
		txn->failed = true;
		delayed_fail(txn->delayed, ret, err);
	}
	return ret;
}

/* Blocks that groups of a type still have; stops counting at @enough. */
static int count(struct btrkit_txn *txn, uint64_t type, uint64_t enough, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t size = txn->fs->super.nodesize, most = space_free_bytes(txn->space, type) / size;

	/* Where they do not come to that the pieces need not be looked for. */
	if (most < enough) {
		*ret = most;
		return 0;
	}
	return space_count(txn->space, type, size, enough, ret, err);
}

/* A new chunk changes the chunk tree, whose blocks lie in chunks of their own. */
static int reserve_system(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t need = 4 * (txn->fs->chunk_tree.level + 1u);
	uint64_t pieces;
	int ret = count(txn, BG_SYSTEM, need, &pieces, err);

	return ret || pieces >= need ? ret : add_chunk(txn, BG_SYSTEM, false, err);
}

/* Sees to it that @need blocks are free in groups of metadata. @ret_pieces: those that are, as far as they count */
static int make_room(struct btrkit_txn *txn, uint64_t need, enum txn_chunks chunks, uint64_t *ret_pieces,
		     struct btrkit_error *err)
{
	uint64_t pieces;
	int ret;

	for (;;) {
		ret = count(txn, BG_METADATA, need, &pieces, err);
		if (ret)
			return ret;
		*ret_pieces = pieces;
		if (pieces >= need)
			return 0;
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
	uint64_t pieces;
	struct bound b;
	int ret = bound_begin(txn, &b, err);

	return ret ? ret : make_room(txn, bound_blocks(&b, blocks), TXN_CHUNKS, &pieces, err);
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
		int r = fs_try_root(txn->fs, trees[i], &root, &item, err);

		if (r < 0)
			return r;
		if (r)
			continue;
		used += item.bytes_used;
		n++;
	}
	least = n * unit + of_an_unlink * unit * (txn->free_space_tree ? 2 : 1);
	used = used > least ? used : least;
	*ret = used < GLOBAL_RESERVE_MAX ? used : GLOBAL_RESERVE_MAX;
	return 0;
}

/* What is asked for, and what is asked for besides as long as there is plenty. */
struct asking {
	const struct ticket_amount *all;
	const struct ticket_need *need;
	struct bound bound;
	uint64_t keep;	 /* blocks that stay free for Linux, and for who removes something after the commit */
	uint64_t pinned; /* that a commit frees */
};

/*
 * The blocks that are needed for so much: as many as it comes to, with enough for one who removes something later; what
 * is kept stays free behind all that is reserved, but for those who remove something themselves.
 */
static uint64_t blocks_for(const struct asking *a, const struct ticket_amount *all, uint64_t *bound)
{
	const struct ticket_amount more = { all->items + REMOVAL_ITEMS, all->bytes + REMOVAL_BYTES,
					    all->leaves + REMOVAL_ITEMS };
	uint64_t keep;

	*bound = bound_items(&a->bound, a->need->removes ? all : &more);
	if (a->need->removes)
		return *bound;
	keep = a->keep + (uint64_t)all->bytes / a->bound.room + 1;
	keep = keep > a->pinned ? keep - a->pinned : 0;
	return *bound > keep ? *bound : keep;
}

static struct ticket_amount plus(const struct ticket_amount *a, const struct ticket_amount *b)
{
	return (struct ticket_amount){ a->items + b->items, a->bytes + b->bytes, a->leaves + b->leaves };
}

/*
 * The most besides, in the measure of what is asked for, that so many blocks will do for; but what is removed lies
 * beside each other more often than not.
 */
static struct ticket_amount most_credit(const struct asking *a, const struct ticket_amount *credit, uint64_t pieces)
{
	struct ticket_amount best = { 0 };
	const int64_t in_a_leaf = a->need->removes ? REMOVED_IN_A_LEAF : 1;
	int64_t low = 0, high = a->need->items ? credit->leaves : 0;
	uint64_t bound;

	while (high - low > 1 + low / 16) {
		const int64_t leaves = low + (high - low) / 2, items = leaves * in_a_leaf;
		const struct ticket_amount c = { items < credit->items ? items : credit->items,
						 leaves * a->need->bytes / a->need->items + 1, leaves };
		const struct ticket_amount all = plus(a->all, &c);

		if (c.bytes <= credit->bytes && blocks_for(a, &all, &bound) <= pieces) {
			best = c;
			low = leaves;
		} else {
			high = leaves;
		}
	}
	return best;
}

static int begin_asking(struct btrkit_txn *txn, struct asking *a, struct btrkit_error *err)
{
	const struct ticket_amount removal = { REMOVAL_ITEMS, REMOVAL_BYTES, REMOVAL_ITEMS };
	const uint64_t nodesize = txn->fs->super.nodesize;
	uint64_t later;
	int ret = bound_begin(txn, &a->bound, err);

	if (ret || a->need->removes)
		return ret;
	ret = global_reserve(txn, &a->keep, err);
	if (ret)
		return ret;
	a->keep /= nodesize;
	later = bound_next(&a->bound, &removal);
	a->keep = a->keep > later ? a->keep : later;
	a->pinned = space_pinned(txn->space, BG_METADATA) / nodesize;
	return 0;
}

int txn_reserve_items(struct btrkit_txn *txn, const struct ticket_amount *all, const struct ticket_need *need,
		      struct ticket_amount *credit, enum txn_chunks chunks, struct btrkit_error *err)
{
	struct asking a = { .all = all, .need = need };
	struct ticket_amount most;
	uint64_t bound, pieces;
	int ret;

	ret = begin_asking(txn, &a, err);
	if (ret)
		return ret;
	most = plus(all, credit);
	ret = make_room(txn, blocks_for(&a, &most, &bound), chunks == TXN_CHUNKS_OF_PLENTY ? TXN_NO_CHUNKS : chunks,
			&pieces, err);
	/* A chunk stays, and takes room from data: what wants little is not to make one. */
	if (ret == -ENOSPC && chunks == TXN_CHUNKS_OF_PLENTY && most_credit(&a, credit, pieces).leaves < ENOUGH_CREDIT)
		ret = make_room(txn, blocks_for(&a, &most, &bound), chunks, &pieces, err);
	if (ret == -ENOSPC && credit->items && !txn->failed) {
		/* A chunk that was added for it is one more thing to change. */
		ret = begin_asking(txn, &a, err);
		if (ret)
			return ret;
		*credit = most_credit(&a, credit, pieces);
		most = plus(all, credit);
		ret = make_room(txn, blocks_for(&a, &most, &bound), chunks, &pieces, err);
	}
	if (!ret)
		txn->delayed->tickets.promise = (struct ticket_promise){
			bound, txn->overlay->created + txn->overlay->copied
		};
	return ret;
}

/* What was granted, in blocks; the credit is taken back, so that only what somebody relies on counts. */
static int bound_held(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err)
{
	struct tickets *t = &txn->delayed->tickets;
	struct ticket_amount held;
	struct bound b;
	int r;

	tickets_recall(t);
	pthread_mutex_lock(&t->lock);
	held = t->held;
	pthread_mutex_unlock(&t->lock);
	r = bound_begin(txn, &b, err);
	if (!r)
		*ret = bound_items(&b, &held);
	return r;
}

int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err)
{
	uint64_t need, pieces;
	int ret = bound_held(txn, &need, err);

	/* What describes it needs room itself: that is one of the changes of a commit. */
	if (!ret)
		ret = make_room(txn, need, TXN_NO_CHUNKS, &pieces, err);
	if (!ret)
		ret = reserve_system(txn, err);
	return ret ? ret : add_chunk(txn, BG_DATA, false, err);
}

int txn_spare_mixed(struct btrkit_txn *txn, uint64_t min, uint64_t *max, struct btrkit_error *err)
{
	const uint64_t nodesize = txn->fs->super.nodesize;
	uint64_t need, pieces, keep, wanted = *max / nodesize + 1;
	int ret;

	if (!(txn->fs->super.incompat & INCOMPAT_MIXED_GROUPS))
		return 0;
	ret = bound_held(txn, &need, err);
	if (!ret)
		ret = global_reserve(txn, &keep, err);
	if (ret)
		return ret;
	need = need > keep / nodesize ? need : keep / nodesize;
	ret = count(txn, BG_METADATA, need + wanted, &pieces, err);
	if (ret || pieces >= need + wanted)
		return ret;
	if (pieces < need || (pieces - need) * nodesize < min)
		return err_set(err, BTRKIT_NO_SPACE,
			       "%" PRIu64 " blocks are free for data and trees, of which trees may need %" PRIu64,
			       pieces, need);
	*max = (pieces - need) * nodesize;
	return 0;
}
