// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reserves space for the blocks of a transaction in advance: inside an edit or a commit it is too late. */
#include "lib/reserve/reserve.h"

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/reserve/bound.h"
#include "lib/space/chunk.h"
#include "lib/volume/raid_map.h"

#define GLOBAL_RESERVE_MAX (512ull << 20)

/* Maximum that one step of a removal needs. */
#define REMOVAL_ITEMS 16
#define REMOVAL_BYTES 512

/* Number of removed items per leaf that is assumed for credit. */
#define REMOVED_IN_A_LEAF 16

/* If there is space for the credit of so many leaves, no chunk is allocated for more. */
#define ENOUGH_CREDIT 1024

/* Minimum ratio of unallocated space to what a chunk takes of it for TXN_CHUNKS_OF_PLENTY. */
#define PLENTY 64u

/* Items for which Linux reserves space before it creates a file, and again for delayed references. */
#define CREATE_ITEMS 6u

/* Bytes that a chunk takes on all devices together. */
static uint64_t bytes_on_devices(const struct chunk_plan *plan)
{
	const struct raid_shape shape = { plan->type, plan->num_stripes };

	return plan->length / raid_data_stripes(&shape) * plan->num_stripes;
}

static int add_chunk(struct btrkit_txn *txn, uint64_t type, bool of_plenty, struct btrkit_error *err)
{
	struct chunk_plan plan;
	struct space_group *g;
	int ret = chunk_plan(txn->space, type, &plan, err);

	if (!ret && of_plenty && plan.unused / PLENTY < bytes_on_devices(&plan))
		ret = -ENOSPC;
	if (ret)
		return ret;
	return chunk_create(txn->space, &plan, &txn->super, &g, err);
}

/* Counts the free blocks in groups of a type, up to @enough. */
static int count(struct btrkit_txn *txn, uint64_t type, uint64_t enough, uint64_t *ret, struct btrkit_error *err)
{
	const uint64_t size = txn->fs->geometry.nodesize, most = space_free_bytes(txn->space, type) / size;

	/* If the total is too small, there is no need to look at the pieces. */
	if (most < enough) {
		*ret = most;
		return 0;
	}
	return space_count(txn->space, type, size, enough, ret, err);
}

/* A new chunk changes the chunk tree, whose blocks are in chunks of their own. */
static int reserve_system(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const uint64_t need = 4 * (txn->fs->chunk_tree.level + 1u);
	uint64_t pieces;
	int ret = count(txn, BG_SYSTEM, need, &pieces, err);

	return ret || pieces >= need ? ret : add_chunk(txn, BG_SYSTEM, false, err);
}

/* Makes sure that @need blocks are free in metadata groups. @ret_pieces: number of free blocks, counted up to @need */
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
		if (ret == -ENOSPC && !failure_is_set(txn->failure))
			return err_set(err, BTRKIT_NO_SPACE,
				       "%" PRIu64 " tree blocks may be needed, %" PRIu64
				       " are free, and no device has space for another chunk",
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

/* Linux's global block reserve, which it needs to remove anything from a full filesystem. */
static int global_reserve(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err)
{
	static const uint64_t trees[] = { OID_EXTENT_TREE, OID_CSUM_TREE, OID_FREE_SPACE_TREE, OID_BLOCK_GROUP_TREE };
	const uint64_t unit = (uint64_t)txn->fs->geometry.nodesize * LEVELS_MAX * 2;
	const unsigned of_an_unlink = 6;
	struct tree_root root;
	struct root_item item;
	uint64_t used, least, n = of_an_unlink + 1;

	used = txn->fs->geometry.nodesize;
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

/* A request and what it is checked by. */
struct asking {
	const struct delayed_amount *all;
	const struct ticket_need *need;
	struct bound bound;
	uint64_t keep;	 /* blocks that must stay free for Linux, and for removals after the commit */
	uint64_t pinned; /* blocks that a commit frees */
};

/*
 * Number of blocks that must be free for @all: what it needs at most, including a later removal. Unless the request
 * itself removes things, the blocks to keep must also be free after the commit. @bound: the former alone
 */
static uint64_t blocks_for(const struct asking *a, const struct delayed_amount *all, uint64_t *bound)
{
	const struct delayed_amount more = { all->items + REMOVAL_ITEMS, all->bytes + REMOVAL_BYTES,
					    all->leaves + REMOVAL_ITEMS };
	uint64_t keep;

	*bound = bound_items(&a->bound, a->need->removes ? all : &more);
	if (a->need->removes)
		return *bound;
	keep = a->keep + (uint64_t)all->bytes / a->bound.room + 1;
	keep = keep > a->pinned ? keep - a->pinned : 0;
	return *bound > keep ? *bound : keep;
}

static struct delayed_amount plus(const struct delayed_amount *a, const struct delayed_amount *b)
{
	return (struct delayed_amount){ a->items + b->items, a->bytes + b->bytes, a->leaves + b->leaves };
}

/*
 * The largest credit, in proportion to the request, for which @pieces blocks suffice. Removed items are usually close
 * to each other, so fewer leaves than items are assumed for them.
 */
static struct delayed_amount most_credit(const struct asking *a, const struct delayed_amount *credit, uint64_t pieces)
{
	struct delayed_amount best = { 0 };
	const int64_t in_a_leaf = a->need->removes ? REMOVED_IN_A_LEAF : 1;
	int64_t low = 0, high = a->need->items ? credit->leaves : 0;
	uint64_t bound;

	while (high - low > 1 + low / 16) {
		const int64_t leaves = low + (high - low) / 2, items = leaves * in_a_leaf;
		const struct delayed_amount c = { items < credit->items ? items : credit->items,
						 leaves * a->need->bytes / a->need->items + 1, leaves };
		const struct delayed_amount all = plus(a->all, &c);

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
	const struct delayed_amount removal = { REMOVAL_ITEMS, REMOVAL_BYTES, REMOVAL_ITEMS };
	const uint64_t nodesize = txn->fs->geometry.nodesize;
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

/*
 * Number of free blocks below which another chunk is worth its space, which data then cannot have: if data took the
 * rest of the devices, Linux could not create a file, even after others have been removed.
 */
static uint64_t blocks_for_linux(const struct asking *a)
{
	return a->keep + (uint64_t)CREATE_ITEMS * LEVELS_MAX * 2 * 2;
}

/*
 * Makes chunks for @need blocks if that takes little of the devices, or else one that Linux needs, before data takes
 * all of the devices. @return 0: @need blocks are free; -ENOSPC: fewer; <0
 */
static int make_room_for_credit(struct btrkit_txn *txn, const struct asking *a, uint64_t need, uint64_t *pieces,
				struct btrkit_error *err)
{
	int ret = make_room(txn, need, TXN_CHUNKS_OF_PLENTY, pieces, err);

	if (ret == -ENOSPC && !failure_is_set(txn->failure))
		ret = make_room(txn, blocks_for_linux(a), TXN_CHUNKS, pieces, err);
	return ret ? ret : make_room(txn, need, TXN_NO_CHUNKS, pieces, err);
}

int txn_reserve_items(struct btrkit_txn *txn, const struct delayed_amount *all, const struct ticket_need *need,
		      struct delayed_amount *credit, enum txn_chunks chunks, struct btrkit_error *err)
{
	struct asking a = { .all = all, .need = need };
	/* A chunk is permanent, and takes space from data: there are cheaper ways to make room for one operation. */
	const enum txn_chunks now = chunks == TXN_CHUNKS_OF_PLENTY ? TXN_NO_CHUNKS : chunks;
	struct delayed_amount most;
	uint64_t bound, pieces;
	int ret;

	ret = begin_asking(txn, &a, err);
	if (ret)
		return ret;
	most = plus(all, credit);
	ret = make_room(txn, blocks_for(&a, &most, &bound), now, &pieces, err);
	if (ret == -ENOSPC && chunks == TXN_CHUNKS_OF_PLENTY && most_credit(&a, credit, pieces).leaves < ENOUGH_CREDIT)
		ret = make_room_for_credit(txn, &a, blocks_for(&a, &most, &bound), &pieces, err);
	if (ret == -ENOSPC && credit->items && !failure_is_set(txn->failure)) {
		/* A chunk that was allocated for it has to be described, too. */
		ret = begin_asking(txn, &a, err);
		if (ret)
			return ret;
		*credit = most_credit(&a, credit, pieces);
		most = plus(all, credit);
		ret = make_room(txn, blocks_for(&a, &most, &bound), now, &pieces, err);
	}
	if (!ret)
		txn->tickets->promise = (struct ticket_promise){
			bound, txn->overlay->created + txn->overlay->copied
		};
	return ret;
}

/* Blocks needed for what was granted. The credit is recalled, so that only what operations rely on is included. */
static int bound_held(struct btrkit_txn *txn, uint64_t *ret, struct btrkit_error *err)
{
	struct tickets *t = txn->tickets;
	struct delayed_amount held;
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

int txn_reserve_chunk_tree(struct btrkit_txn *txn, enum txn_chunks chunks, struct btrkit_error *err)
{
	uint64_t need, pieces;
	int ret = bound_held(txn, &need, err);

	/* The items need space, too. They are among the changes of a commit. */
	if (!ret)
		ret = make_room(txn, need, chunks, &pieces, err);
	return ret ? ret : reserve_system(txn, err);
}

int txn_inc_ro(struct btrkit_txn *txn, struct space_group *g, struct btrkit_error *err)
{
	int ret;

	space_inc_ro(g);
	ret = txn_reserve_chunk_tree(txn, TXN_CHUNKS, err);
	if (ret)
		space_dec_ro(g);
	return ret;
}

int txn_add_data_chunk(struct btrkit_txn *txn, struct btrkit_error *err)
{
	int ret = txn_reserve_chunk_tree(txn, TXN_NO_CHUNKS, err);

	return ret ? ret : add_chunk(txn, BG_DATA, false, err);
}

int txn_add_chunk(struct btrkit_txn *txn, uint64_t type, uint64_t profile, struct space_group **ret,
		  struct btrkit_error *err)
{
	struct chunk_plan plan;
	struct space_group *g;
	int r = txn_reserve_chunk_tree(txn, TXN_CHUNKS, err);

	if (!r)
		r = chunk_plan_profile(txn->space, type, profile, &plan, err);
	if (r)
		return r;
	r = chunk_create(txn->space, &plan, &txn->super, &g, err);
	if (!r && ret)
		*ret = g;
	return r;
}

int txn_spare_mixed(struct btrkit_txn *txn, uint64_t min, uint64_t *max, struct btrkit_error *err)
{
	const uint64_t nodesize = txn->fs->geometry.nodesize;
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
			       "%" PRIu64 " blocks are free for data and metadata, of which metadata may need %" PRIu64,
			       pieces, need);
	*max = (pieces - need) * nodesize;
	return 0;
}
