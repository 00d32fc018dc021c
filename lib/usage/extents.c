// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the extent tree. Leaves are decoded by threads, and the results are appended in order. The references of an
 * extent may continue in the next leaf, so they are kept separately until the last one is known.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"
#include "lib/sweep/leaves.h"
#include "lib/sweep/lost.h"
#include "lib/usage/damage.h"
#include "lib/usage/extents.h"
#include "lib/usage/extents_leaf.h"
#include "lib/usage/leaves.h"
#include "lib/usage/read.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"
#include "lib/usage/work.h"
#include "lib/volume/volume.h"

struct load {
	struct usage_work *w;
	struct sweep_leaves leaves;
	struct usage_extents_batch *batches;
	void **slots;
	size_t num_batches;
	struct usage_refs open;
	uint64_t end;
};

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct usage_extents_batch *b = slot;
	const size_t size = b->w->fs->geometry.nodesize;
	int ret;

	(void)ctx;
	b->blocks.n = b->extents.n = 0;
	b->head = b->open = (struct usage_refs){ 0 };
	b->end = 0;
	for (size_t i = 0; i < b->n; i++)
		b->want[i] = sweep_leaf_ref(b->leaves, b->first + i);
	ret = usage_read(b->w, b->want, NULL, b->n, b->buf, b->ok, err);
	for (size_t i = 0; !ret && i < b->n; i++)
		if (b->ok[i])
			ret = usage_extents_leaf(b, b->buf + i * size, err);
	usage_extents_end(b);
	return ret;
}

/* Determines how many of the first entries overlap the last extent of the previous batch, and reports them. */
static int skip_overlaps(struct load *l, const struct array *list, size_t entry, size_t *skip, struct btrkit_error *err)
{
	const struct usage_table t = { .at = list->at, .n = list->n };
	int ret = 0;

	for (*skip = 0; !ret && *skip < list->n && usage_table_address(&t, entry, *skip) < l->end; ++*skip) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		err_corrupt(&what, "key.objectid", "extent overlaps the previous one");
		err_at_tree(&what, OID_EXTENT_TREE);
		err_at_key(&what, &KEY(usage_table_address(&t, entry, *skip), KEY_EXTENT_ITEM, 0));
		ret = usage_damage(l->w, -EUCLEAN, &what, err);
	}
	return ret;
}

static int append(struct load *l, struct usage_table *to, const struct array *list, size_t entry,
		  struct btrkit_error *err)
{
	size_t skip;
	int ret = skip_overlaps(l, list, entry, &skip, err);

	if (!ret)
		ret = usage_table_reserve(to, entry, list->n - skip, err);
	if (ret || list->n == skip)
		return ret;
	memcpy((uint8_t *)to->at + to->n * entry, (const uint8_t *)list->at + skip * entry, (list->n - skip) * entry);
	to->n += list->n - skip;
	return 0;
}

/* Adds references at the start of a batch to the last extent of the previous batch. */
static void join_head(struct load *l, const struct usage_extents_batch *b)
{
	const struct usage_table *t = &l->w->u->extents;
	struct usage_extent *last;

	if (b->head.bytenr != l->open.bytenr || !l->open.of_data || !t->n)
		return;
	last = usage_extents_at(t, t->n - 1);
	if (last->start != l->open.bytenr)
		return;
	shared_join(&l->open.refs, &b->head.refs);
	atomic_store_explicit(&last->info, usage_refs_flags(&l->open.refs), memory_order_relaxed);
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct load *l = ctx;
	struct usage_extents_batch *b = slot;
	int ret = 0;

	join_head(l, b);
	ret = append(l, &l->w->u->extents, &b->extents, sizeof(struct usage_extent), err);
	if (!ret)
		ret = append(l, &l->w->u->blocks, &b->blocks, sizeof(struct usage_block), err);
	if (b->open.bytenr)
		l->open = b->open;
	if (b->end > l->end)
		l->end = b->end;
	for (size_t i = 0; !ret && i < b->n; i++) {
		l->w->u->total.blocks_read += b->ok[i];
		if (!b->ok[i])
			ret = sweep_leaf_lost(&l->leaves, b->first + i, err);
	}
	return ret ? ret : usage_progress(l->w, b->n, err);
}

static int create_batches(struct load *l, struct btrkit_error *err)
{
	const size_t blocks = usage_batch_blocks(l->w);

	l->num_batches = 2 * l->w->threads + 1;
	l->batches = calloc(l->num_batches, sizeof(*l->batches));
	l->slots = calloc(l->num_batches, sizeof(*l->slots));
	if (!l->batches || !l->slots)
		return err_nomem(err);
	for (size_t i = 0; i < l->num_batches; i++) {
		struct usage_extents_batch *b = &l->batches[i];

		*b = (struct usage_extents_batch){ .w = l->w, .leaves = &l->leaves };
		b->buf = io_buffer(blocks * l->w->fs->geometry.nodesize);
		b->want = calloc(blocks, sizeof(*b->want));
		b->ok = calloc(blocks, sizeof(*b->ok));
		l->slots[i] = b;
		if (!b->buf || !b->want || !b->ok)
			return err_nomem(err);
	}
	return 0;
}

static void release_batches(struct load *l)
{
	for (size_t i = 0; l->batches && i < l->num_batches; i++) {
		struct usage_extents_batch *b = &l->batches[i];

		free(b->buf);
		free(b->want);
		free(b->ok);
		free(b->blocks.at);
		free(b->extents.at);
	}
	free(l->batches);
	free(l->slots);
}

static int give_out(struct load *l, struct btrkit_error *err)
{
	const size_t blocks = usage_batch_blocks(l->w), n = l->leaves.list.n;
	struct pipeline *p;
	int ret;

	ret = usage_pipeline(l->w, &(struct pipeline_ops){ work, finish, l }, l->slots, l->num_batches, &p, err);
	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < n; i += blocks) {
		void *slot;
		struct usage_extents_batch *b;

		ret = pipeline_next(p, &slot, err);
		if (ret)
			break;
		b = slot;
		b->first = i;
		b->n = n - i < blocks ? n - i : blocks;
		pipeline_submit(p);
	}
	if (!ret)
		ret = pipeline_drain(p, err);
	pipeline_destroy(p);
	return ret;
}

static int no_extent_tree(struct usage_work *w, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	if (sweep_lost_add(&w->lost, 0, UINT64_MAX, err))
		return -ENOMEM;
	return usage_damage(w, err_set(&what, BTRKIT_NOT_FOUND, "no tree %d", OID_EXTENT_TREE), &what, err);
}

int usage_load_extents(struct usage_work *w, const struct tree_root *extent_tree, struct btrkit_error *err)
{
	struct load l = { .w = w };
	int ret;

	if (!extent_tree->bytenr)
		ret = no_extent_tree(w, err);
	else
		ret = usage_leaves_find(w, extent_tree, &l.leaves, err);
	if (!ret)
		ret = create_batches(&l, err);
	w->due = 5 * l.leaves.list.n;
	if (!ret)
		ret = give_out(&l, err);
	release_batches(&l);
	if (!ret)
		ret = usage_table_settle(&w->u->blocks, sizeof(struct usage_block), err);
	if (!ret)
		ret = usage_table_settle(&w->u->extents, sizeof(struct usage_extent), err);
	if (!w->lost.n) {
		w->lost = l.leaves.lost;
		l.leaves.lost = (struct array){ 0 };
	}
	sweep_lost_sort(&w->lost);
	sweep_leaves_release(&l.leaves);
	return ret;
}
