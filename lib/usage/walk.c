// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks the file trees from the roots down. The blocks of a level are read in address order after all levels above,
 * when their owners are final. Each block passes its owners on to what it points to.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"
#include "lib/sweep/block.h"
#include "lib/sweep/drop.h"
#include "lib/tree/node.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaf.h"
#include "lib/usage/own.h"
#include "lib/usage/owners/collect.h"
#include "lib/usage/owners/dropped.h"
#include "lib/usage/owners/pending.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/read.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"
#include "lib/usage/walk.h"
#include "lib/usage/work.h"
#include "lib/volume/volume.h"

/* A batch of blocks of a level. */
struct batch {
	struct usage_work *w;
	unsigned level;
	size_t n;
	uint32_t *sets, *digests;
	struct node_ref *want;
	bool *ok;
	uint8_t *buf;
	struct array pending;
	struct usage_leaf_reader leaves;
};

struct walk {
	struct usage_work *w;
	struct batch *batches;
	void **slots;
	size_t num_batches;
};

/* Restores a generation from its lower 32 bits, assuming that it is near the current one. */
static uint64_t whole_generation(const struct usage_work *w, uint32_t low)
{
	const uint64_t now = w->fs->super.generation;
	const uint64_t ret = (now & ~(uint64_t)UINT32_MAX) | low;

	return ret > now + 1 && ret > UINT32_MAX ? ret - UINT32_MAX - 1 : ret;
}

static int read_node(struct batch *b, const uint8_t *node, uint32_t set, struct btrkit_error *err)
{
	const struct disk_key_ptr *ptrs = block_ptrs(node);
	struct usage_pointer p[USAGE_FIND_MANY];
	size_t n = 0;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < block_nritems(node); i++) {
		p[n++] = (struct usage_pointer){ le64_get(ptrs[i].blockptr), le64_get(ptrs[i].generation),
						 (uint8_t)(b->level - 1), usage_digest(&ptrs[i].key) };
		if (n < USAGE_FIND_MANY && i + 1 < block_nritems(node))
			continue;
		ret = usage_reach_blocks(b->w, &b->pending, p, n, set, err);
		n = 0;
	}
	return ret;
}

/* Does additional checks of a block of a file tree: owner, emptiness, and digest of the first key. */
static int verify_block(const struct batch *b, size_t i, const uint8_t *block, bool *ok, struct btrkit_error *err)
{
	const uint64_t owner = le64_get(block_header(block)->owner);
	const uint32_t wanted = b->digests[i];
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (!sweep_has_files(owner))
		err_corrupt(&what, "owner", "block of tree %" PRIu64 " in a file tree", owner);
	else if (wanted && !block_nritems(block))
		err_corrupt(&what, "nritems", "tree block is empty, but not the root of a tree");
	else if (wanted && wanted != usage_digest((const struct disk_key *)(block_header(block) + 1)))
		err_corrupt(&what, "key", "first key of tree block does not match its parent");
	*ok = !what.err;
	if (*ok)
		return 0;
	err_at_logical(&what, b->want[i].bytenr);
	return usage_damage_of(b->w, b->sets[i], -EUCLEAN, &what, err);
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct batch *b = slot;
	const size_t size = b->w->fs->geometry.nodesize;
	int ret;

	(void)ctx;
	ret = usage_read(b->w, b->want, b->sets, b->n, b->buf, b->ok, err);
	for (size_t i = 0; !ret && i < b->n; i++) {
		const uint8_t *block = b->buf + i * size;
		bool ok;

		if (!b->ok[i])
			continue;
		ret = verify_block(b, i, block, &ok, err);
		if (ret || !ok)
			continue;
		ret = b->level ? read_node(b, block, b->sets[i], err) :
				 usage_read_leaf(b->w, &b->leaves, block, b->sets[i], err);
	}
	return ret;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct walk *k = ctx;
	struct batch *b = slot;
	int ret;

	for (size_t i = 0; i < b->n; i++)
		k->w->u->total.blocks_read += b->ok[i];
	if (!b->level)
		usage_leaf_gathered(k->w, &b->leaves);
	ret = usage_pending_gather(k->w, &b->pending, err);
	return ret ? ret : usage_progress(k->w, b->n, err);
}

/* Fills a batch with blocks of the level from *from on. The batch may stay empty. */
static void fill_batch(struct batch *b, unsigned level, size_t *from)
{
	const struct usage_table *t = &b->w->u->blocks;
	const size_t most = usage_batch_blocks(b->w);
	uint64_t run = 0;

	b->level = level;
	for (b->n = 0; b->n < most && *from < t->n; ++*from) {
		struct usage_block *block = usage_blocks_at(t, *from);
		const uint32_t set = atomic_load_explicit(&block->set, memory_order_relaxed);

		if (usage_block_level(block) != level || !set || set == b->w->filesystem)
			continue;
		b->sets[b->n] = set;
		b->digests[b->n] = usage_block_digest(block);
		b->want[b->n] = (struct node_ref){ usage_table_address(t, sizeof(*block), *from),
						   whole_generation(b->w, block->generation), 0, (uint8_t)level, NULL };
		/* Contiguous blocks are prefetched in one request. */
		if (b->n && b->want[b->n].bytenr != b->want[b->n - 1].bytenr + b->w->u->nodesize) {
			volume_prefetch(b->w->fs->volume, b->want[run].bytenr, (b->n - run) * b->w->u->nodesize);
			run = b->n;
		}
		b->n++;
	}
	if (b->n)
		volume_prefetch(b->w->fs->volume, b->want[run].bytenr, (b->n - run) * b->w->u->nodesize);
}

/* Adds the owners that were noted, if these are many, or if sets are. */
static int settle_some(struct walk *k, struct pipeline *p, bool data, struct btrkit_error *err)
{
	int ret;

	if (!usage_pending_is_full(k->w) && !usage_sets_are_many(k->w))
		return 0;
	ret = pipeline_drain(p, err);
	return ret ? ret : usage_pending_settle(k->w, data, err);
}

static int walk_level(struct walk *k, unsigned level, struct btrkit_error *err)
{
	struct pipeline *p = NULL;
	size_t at = 0;
	int ret;

	ret = usage_pipeline(k->w, &(struct pipeline_ops){ work, finish, k }, k->slots, k->num_batches, &p, err);
	while (!ret && at < k->w->u->blocks.n) {
		void *slot;

		ret = settle_some(k, p, !level, err);
		if (!ret)
			ret = pipeline_next(p, &slot, err);
		if (ret)
			break;
		fill_batch(slot, level, &at);
		pipeline_submit(p);
	}
	if (!ret)
		ret = pipeline_drain(p, err);
	pipeline_destroy(p);
	return ret ? ret : usage_pending_settle(k->w, !level, err);
}

static int seed(struct usage_work *w, struct btrkit_error *err)
{
	const struct usage_root *roots = w->roots.at;
	int ret = 0;

	for (size_t i = 0; !ret && i < w->roots.n; i++) {
		const struct tree_root *root = &roots[i].root;
		const struct usage_pointer p = { root->bytenr, root->generation, root->level, 0 };
		uint32_t set;

		if (sweep_drop_cuts_root(&roots[i].drop, root->level)) {
			ret = usage_add_dropped(w, &p, i, err);
			continue;
		}
		ret = sets_single(&w->u->sets, roots[i].owner, &set, err);
		if (!ret)
			ret = usage_reach_blocks(w, &w->pending, &p, 1, set, err);
	}
	return ret ? ret : usage_pending_settle(w, false, err);
}

static int own_v1_cache(struct usage_work *w, struct btrkit_error *err)
{
	const struct usage_table *t = &w->u->extents;
	size_t hint = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < w->v1.n; i++) {
		struct usage_stray s = ((const struct usage_stray *)w->v1.at)[i];
		const size_t at = usage_table_find(t, sizeof(struct usage_extent), s.bytenr, &hint);

		s.set = w->filesystem;
		s.info = USAGE_WRITTEN;
		if (at == SIZE_MAX) {
			ret = usage_stray_extent(w, &s, err);
			continue;
		}
		atomic_fetch_or_explicit(&usage_extents_at(t, at)->info, USAGE_WRITTEN, memory_order_relaxed);
		ret = usage_add_now(w, &usage_extents_at(t, at)->set, w->filesystem, err);
	}
	return ret;
}

static int create_batches(struct walk *k, struct btrkit_error *err)
{
	const size_t blocks = usage_batch_blocks(k->w);

	k->num_batches = 2 * k->w->threads + 1;
	k->batches = calloc(k->num_batches, sizeof(*k->batches));
	k->slots = calloc(k->num_batches, sizeof(*k->slots));
	if (!k->batches || !k->slots)
		return err_nomem(err);
	for (size_t i = 0; i < k->num_batches; i++) {
		struct batch *b = &k->batches[i];

		b->w = k->w;
		b->leaves.pending = &b->pending;
		b->sets = calloc(blocks, sizeof(*b->sets));
		b->digests = calloc(blocks, sizeof(*b->digests));
		b->want = calloc(blocks, sizeof(*b->want));
		b->ok = calloc(blocks, sizeof(*b->ok));
		b->buf = io_buffer(blocks * k->w->fs->geometry.nodesize);
		k->slots[i] = b;
		if (!b->sets || !b->digests || !b->want || !b->ok || !b->buf)
			return err_nomem(err);
	}
	return 0;
}

static void release_batches(struct walk *k)
{
	for (size_t i = 0; k->batches && i < k->num_batches; i++) {
		struct batch *b = &k->batches[i];

		free(b->sets);
		free(b->digests);
		free(b->want);
		free(b->ok);
		free(b->buf);
		free(b->pending.at);
		free(b->leaves.orphans.at);
	}
	free(k->batches);
	free(k->slots);
}

int usage_walk(struct usage_work *w, struct btrkit_error *err)
{
	struct walk k = { .w = w };
	int ret = create_batches(&k, err);

	/* Blocks of other trees are not read, so this is an upper bound. */
	w->due = w->done + w->u->blocks.n;
	if (!ret)
		ret = seed(w, err);
	for (unsigned level = LEVELS_MAX; !ret && level-- > 0;) {
		ret = usage_merge_blocks(w, level, err);
		if (!ret)
			ret = usage_read_dropped(w, level, err);
		if (!ret)
			ret = walk_level(&k, level, err);
	}
	if (!ret)
		ret = usage_own_trees(w, err);
	if (!ret)
		ret = usage_own_dropped(w, err);
	if (!ret)
		ret = own_v1_cache(w, err);
	if (!ret)
		ret = usage_merge_extents(w, err);
	release_batches(&k);
	return ret;
}
