// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The extent tree: its leaves are decoded by threads and appended in their order. References of an extent may go on in
 * the next leaf, so what is known of an extent's references is kept apart until the last of them has come.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/items/extent.h"
#include "lib/io/buffer.h"
#include "lib/tree/node.h"
#include "lib/usage/state.h"
#include "lib/volume/volume.h"

/* What the references of a data extent say so far. */
struct refs {
	uint64_t bytenr;
	bool of_data;
	struct extent_ref first; /* type 0: none counts yet */
	uint64_t count;
	uint32_t flags;
};

/* A few leaves. */
struct batch {
	struct usage_work *w;
	struct usage_leaves *leaves;
	size_t first, n;
	uint8_t *buf;
	struct node_ref *want;
	bool *ok;
	struct usage_list blocks, extents; /* found there */
	struct refs head;		   /* of an extent that began in the batch before */
	struct refs open;		   /* of the last one */
	uint64_t end;			   /* of the last one, too */
	size_t chunk;
};

struct load {
	struct usage_work *w;
	struct usage_leaves leaves;
	struct batch *batches;
	void **slots;
	size_t num_batches;
	struct refs open;
	size_t open_extent; /* its number in the table, if it is of data */
	uint64_t end;
};

bool usage_in_chunk(const struct usage_work *w, uint64_t start, uint64_t length, size_t *hint)
{
	const struct volume *v = w->fs->volume;
	const struct volume_chunk *c;
	size_t low = 0, high = volume_num_chunks(v);

	if (*hint < high) {
		c = volume_chunk(v, *hint);
		if (start >= c->logical && start - c->logical < c->length)
			return length <= c->length - (start - c->logical);
	}
	/* The first that begins behind the start. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (volume_chunk(v, mid)->logical <= start)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return false;
	*hint = low - 1;
	c = volume_chunk(v, *hint);
	return start - c->logical < c->length && length <= c->length - (start - c->logical);
}

static bool same_ref(const struct extent_ref *a, const struct extent_ref *b)
{
	return a->type == b->type && a->root == b->root && a->objectid == b->objectid && a->offset == b->offset &&
	       a->parent == b->parent;
}

/* Linux does not ask how often a reference is there, but passes over none; an inode that asks may change that. */
static void take_data_ref(struct refs *r, const struct extent_ref *ref)
{
	if (ref->type != KEY_EXTENT_DATA_REF && ref->type != KEY_SHARED_DATA_REF)
		return;
	if (!ref->count || (ref->type == KEY_EXTENT_DATA_REF && ref->root == OID_DATA_RELOC_TREE)) {
		r->flags |= USAGE_UNSURE;
		return;
	}
	if (!r->first.type)
		r->first = *ref;
	else if (!same_ref(&r->first, ref))
		r->flags |= USAGE_SEVERAL;
	r->count += ref->count;
}

/* What @more says, too, which came behind @r. */
static void join_refs(struct refs *r, const struct refs *more)
{
	const uint64_t count = r->count + more->count;

	r->flags |= more->flags;
	if (more->first.type)
		take_data_ref(r, &more->first);
	r->count = count;
}

static uint32_t refs_flags(const struct refs *r)
{
	return r->flags | (r->first.type == KEY_EXTENT_DATA_REF && r->count > 1 ? USAGE_REPEATED : 0);
}

/* There are no more of the last extent in this batch. */
static void end_extent(struct batch *b)
{
	struct usage_extent *last;

	if (!b->open.of_data || !b->extents.n)
		return;
	last = (struct usage_extent *)b->extents.at + b->extents.n - 1;
	if (last->start == b->open.bytenr)
		atomic_store_explicit(&last->info, refs_flags(&b->open), memory_order_relaxed);
}

static int judge_place(const struct batch *b, const struct extent_item *ei, size_t *chunk, struct btrkit_error *err)
{
	if (ei->bytenr < b->end)
		return err_corrupt(err, "key.objectid", "extent begins inside the one before");
	if (!ei->num_bytes || ei->num_bytes / b->w->u->sectorsize > UINT32_MAX)
		return err_corrupt(err, "key.offset", "extent has a length that none can have");
	if (!usage_in_chunk(b->w, ei->bytenr, ei->num_bytes, chunk))
		return err_corrupt(err, "key.objectid", "extent lies in no chunk");
	return 0;
}

static int add_block(struct batch *b, const struct extent_item *ei, struct btrkit_error *err)
{
	struct usage_block *to = usage_list_add(&b->blocks, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	atomic_init(&to->place, usage_place(ei->bytenr, ei->level, 0));
	to->generation = (uint32_t)ei->generation;
	atomic_init(&to->set, 0);
	return 0;
}

static int add_extent(struct batch *b, const struct extent_item *ei, struct btrkit_error *err)
{
	struct usage_extent *to = usage_list_add(&b->extents, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	to->start = ei->bytenr;
	to->sectors = (uint32_t)(ei->num_bytes / b->w->u->sectorsize);
	atomic_init(&to->set, 0);
	atomic_init(&to->info, 0);
	return 0;
}

/* The trees that are no owners of their own belong to the filesystem. */
static void take_block_ref(struct batch *b, const struct extent_ref *ref)
{
	struct usage_block *block = (struct usage_block *)b->blocks.at + b->blocks.n - 1;

	if (ref->type == KEY_TREE_BLOCK_REF && !oid_is_file_tree(ref->root) && ref->root != OID_DATA_RELOC_TREE &&
	    ref->root != OID_TREE_RELOC)
		atomic_init(&block->set, b->w->filesystem);
}

static int take_extent(struct batch *b, const struct item *item, struct btrkit_error *err)
{
	struct extent_item ei;
	struct extent_ref ref;
	int ret = extent_item_decode(&b->w->fs->items, item, &ei, err);

	end_extent(b);
	b->open = (struct refs){ .bytenr = item->key.objectid };
	if (!ret)
		ret = judge_place(b, &ei, &b->chunk, err);
	if (ret)
		return ret;
	b->open.of_data = ei.flags & EXTENT_FLAG_DATA;
	b->end = ei.bytenr + ei.num_bytes;
	ret = b->open.of_data ? add_extent(b, &ei, err) : add_block(b, &ei, err);
	while (!ret && !(ret = extent_item_next_ref(&ei, &ref, err))) {
		if (b->open.of_data)
			take_data_ref(&b->open, &ref);
		else
			take_block_ref(b, &ref);
	}
	if (ret < 0)
		b->open.flags |= USAGE_UNSURE;
	return ret < 0 ? ret : 0;
}

/* A reference with an item of its own; those of blocks are of trees that are walked. */
static int take_keyed(struct batch *b, const struct item *item, struct btrkit_error *err)
{
	struct refs *r = b->open.bytenr == item->key.objectid ? &b->open : &b->head;
	struct extent_ref ref;
	int ret = extent_keyed_ref_decode(item, &ref, err);

	if (ret || (r == &b->open && !r->of_data))
		return ret;
	/* What belongs to no extent changes nothing; that it is there is a check's to tell. */
	if (r == &b->head && !r->bytenr)
		r->bytenr = item->key.objectid;
	if (r->bytenr == item->key.objectid)
		take_data_ref(r, &ref);
	return 0;
}

static int take_leaf(struct batch *b, const uint8_t *leaf, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < block_nritems(leaf); i++) {
		const struct item item = block_item(leaf, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		if (item.key.type == KEY_EXTENT_ITEM || item.key.type == KEY_METADATA_ITEM)
			ret = take_extent(b, &item, &what);
		else if (item.key.type == KEY_EXTENT_DATA_REF || item.key.type == KEY_SHARED_DATA_REF)
			ret = take_keyed(b, &item, &what);
		if (ret) {
			err_at_tree(&what, OID_EXTENT_TREE);
			err_at_logical(&what, le64_get(block_header(leaf)->bytenr));
			err_at_item(&what, i, &item.key);
			ret = usage_damage(b->w, ret, &what, err);
		}
	}
	return ret;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	struct batch *b = slot;
	const size_t size = b->w->fs->items.nodesize;
	int ret;

	(void)ctx;
	b->blocks.n = b->extents.n = 0;
	b->head = b->open = (struct refs){ 0 };
	b->end = 0;
	for (size_t i = 0; i < b->n; i++)
		b->want[i] = usage_leaf_ref(b->leaves, b->first + i);
	ret = usage_read(b->w, b->want, NULL, b->n, b->buf, b->ok, err);
	for (size_t i = 0; !ret && i < b->n; i++)
		if (b->ok[i])
			ret = take_leaf(b, b->buf + i * size, err);
	end_extent(b);
	return ret;
}

/* How many of the first entries begin before the end of the last extent of the batch before. */
static int skip_overlaps(struct load *l, const struct usage_list *list, size_t entry, size_t *skip,
			 struct btrkit_error *err)
{
	const struct usage_table t = { .at = list->at, .n = list->n };
	int ret = 0;

	for (*skip = 0; !ret && *skip < list->n && usage_table_address(&t, entry, *skip) < l->end; ++*skip) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		err_corrupt(&what, "key.objectid", "extent begins inside the one before");
		err_at_tree(&what, OID_EXTENT_TREE);
		err_at_key(&what, &KEY(usage_table_address(&t, entry, *skip), KEY_EXTENT_ITEM, 0));
		ret = usage_damage(l->w, -EUCLEAN, &what, err);
	}
	return ret;
}

static int append(struct load *l, struct usage_table *to, const struct usage_list *list, size_t entry,
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

/* More of what refers to the last extent of the batch before. */
static void join_head(struct load *l, const struct batch *b)
{
	const struct usage_table *t = &l->w->u->extents;
	struct usage_extent *last;

	if (b->head.bytenr != l->open.bytenr || !l->open.of_data || !t->n)
		return;
	last = usage_extents_at(t, t->n - 1);
	if (last->start != l->open.bytenr)
		return;
	join_refs(&l->open, &b->head);
	atomic_store_explicit(&last->info, refs_flags(&l->open), memory_order_relaxed);
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct load *l = ctx;
	struct batch *b = slot;
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
			ret = usage_leaf_lost(&l->leaves, b->first + i, err);
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
		struct batch *b = &l->batches[i];

		*b = (struct batch){ .w = l->w, .leaves = &l->leaves };
		b->buf = io_buffer(blocks * l->w->fs->items.nodesize);
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
		struct batch *b = &l->batches[i];

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
		struct batch *b;

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

static int compare_lost(const void *a, const void *b)
{
	const struct usage_lost *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

bool usage_is_lost(const struct usage_work *w, uint64_t bytenr)
{
	const struct usage_lost *lost = w->lost.at;
	size_t low = 0, high = w->lost.n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (lost[mid].first <= bytenr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && bytenr <= lost[low - 1].last;
}

static int no_extent_tree(struct usage_work *w, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct usage_lost *all = usage_list_add(&w->lost, sizeof(*all), err);

	if (!all)
		return -ENOMEM;
	*all = (struct usage_lost){ 0, UINT64_MAX };
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
		l.leaves.lost = (struct usage_list){ 0 };
	}
	if (w->lost.n)
		qsort(w->lost.at, w->lost.n, sizeof(struct usage_lost), compare_lost);
	usage_leaves_release(&l.leaves);
	return ret;
}
