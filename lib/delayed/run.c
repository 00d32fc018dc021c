// SPDX-License-Identifier: LGPL-2.1-or-later
/* Inserts delayed items into the trees: by inode and key, with as many new items at a time as fit into a leaf. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/base/sort.h"
#include "lib/commit/txn.h"
#include "lib/commit/write.h"
#include "lib/delayed/impl.h"

/* Each item has at least a header, so a leaf cannot hold more. */
#define BATCH_MAX (65536u / sizeof(struct disk_item))

/* Number of items that are changed before others may have the tree. */
#define CHANGES_AT_A_TIME 16u

/* How many items ahead memory is prefetched. */
#define AHEAD 8u

/* Minimum number of inodes that justifies visiting all shards. */
#define RELEASED_AT_A_TIME 256u

/* Minimum memory of delayed items that justifies sorting by several threads. */
#define BYTES_FOR_THREADS (4u << 20)

/* The new items collected so far, in key order and contiguous. */
struct delayed_batch {
	struct delayed_tree *t;
	struct item items[BATCH_MAX];
	size_t n;
	uint32_t bytes, room;
	bool index;
	/* Or items to delete, likewise; never both. */
	struct btrkit_key gone[BATCH_MAX];
	size_t num_gone;
};

static void count_batch(struct delayed_batch *b)
{
	struct btrkit_write_stats *stats = &b->t->delayed->txn->writer->stats;
	struct btrkit_batches *s = b->index ? &stats->index_batches : &stats->item_batches;
	unsigned log2 = 0;

	while (b->n >> (log2 + 1))
		log2++;
	s->batches++;
	s->items += b->n;
	s->log2[log2]++;
}

/* A new item exists already, so its tree is inconsistent. @err: what was reported about the item */
static int contradicts(const struct delayed_tree *t, struct btrkit_error *err)
{
	const struct btrkit_key key = err ? err->key : KEY(0, 0, 0);
	const int ret = err_corrupt(err, NULL, "unexpected item with the key of a new one");

	err_at_tree(err, t->id);
	err_at_key(err, &key);
	return ret;
}

static int put_batch(struct delayed_batch *b, struct btrkit_error *err)
{
	struct delayed *d = b->t->delayed;
	int ret;

	if (!b->n)
		return 0;
	sync_lock_trees(&d->txn->sync);
	ret = edit_insert_many(b->t->edit, b->items, b->n, err);
	if (!ret) {
		count_batch(b);
		ret = txn_write_early(d->txn, err);
	}
	sync_unlock_trees(&d->txn->sync);
	if (ret == -EEXIST)
		ret = contradicts(b->t, err);
	b->n = 0;
	b->bytes = 0;
	return ret;
}

static int is_gone(void *ctx, const struct item *item, struct btrkit_error *err)
{
	struct delayed_tree *t = ctx;

	t->edit->touched |= item->key.type == KEY_INODE_ITEM;
	return delayed_change_ref(t->delayed, t->id, item, -1, err);
}

static int no_longer_there(const struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_corrupt(err, NULL, "item to be changed is missing");

	err_at_tree(err, t->id);
	err_at_key(err, key);
	return ret;
}

/* Deletes the collected keys, one leaf at a time. */
static int take_gone(struct delayed_batch *b, struct btrkit_error *err)
{
	struct delayed_tree *t = b->t;
	int ret = 0;

	for (size_t i = 0, taken; !ret && i < b->num_gone; i += taken) {
		sync_lock_trees(&t->delayed->txn->sync);
		ret = edit_delete_many(t->edit, b->gone + i, b->num_gone - i, is_gone, t, &taken, err);
		sync_unlock_trees(&t->delayed->txn->sync);
		if (ret == -ENOENT)
			ret = no_longer_there(t, &b->gone[i], err);
	}
	b->num_gone = 0;
	return ret;
}

/* Replaces the contents of an item in the tree. Requires both locks. */
static int change_one(struct delayed_tree *t, const struct delayed_inode *in, const struct delayed_item *it,
		      struct btrkit_error *err)
{
	const struct btrkit_key key = delayed_key(in, it);
	struct edit_tree *e = t->edit;
	uint8_t *data;
	uint32_t size;
	int ret;

	e->touched |= it->type == KEY_INODE_ITEM;
	/* Copy the leaf first, which gives the tree its own references to what the old item refers to. */
	ret = edit_bytes(e, &key, &data, &size, err);
	if (!ret) {
		const struct item old = { key, data, size };

		ret = delayed_change_ref(t->delayed, t->id, &old, -1, err);
	}
	if (!ret && it->size == size)
		memcpy(data, it->data, size);
	else if (!ret)
		ret = edit_replace(e, &key, it->data, it->size, err);
	return ret == -ENOENT ? no_longer_there(t, &key, err) : ret;
}

/* Applies consecutive replacements of an inode's items. *@i is set to the first item after them. */
static int change_some(struct delayed_tree *t, const struct delayed_inode *in, uint32_t *i, struct btrkit_error *err)
{
	const uint32_t end = in->n - *i < CHANGES_AT_A_TIME ? in->n : *i + CHANGES_AT_A_TIME;
	int ret = 0;

	sync_lock_trees(&t->delayed->txn->sync);
	for (; !ret && *i < end && in->items[*i]->change == DELAYED_OVER; ++*i)
		ret = change_one(t, in, in->items[*i], err);
	sync_unlock_trees(&t->delayed->txn->sync);
	return ret;
}

static int add_to_batch(struct delayed_batch *b, const struct delayed_inode *in, const struct delayed_item *it,
			struct btrkit_error *err)
{
	const uint32_t bytes = it->size + (uint32_t)sizeof(struct disk_item);
	const bool index = it->type == KEY_DIR_INDEX;
	int ret = 0;

	/* The index items of a directory are batches of their own. */
	if (b->n && (b->bytes + bytes > b->room || b->index != index ||
		     (index && b->items[0].key.objectid != in->objectid)))
		ret = put_batch(b, err);
	if (ret)
		return ret;
	b->index = index;
	b->items[b->n++] = (struct item){ delayed_key(in, it), it->data, it->size };
	b->bytes += bytes;
	return 0;
}

/* Prefetches cache lines. */
static void fetch(const void *at, unsigned lines)
{
	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch((const char *)at + 64 * (size_t)i);
}

/* The memory of an inode's items is usually next to it. */
static void fetch_inode(const struct delayed_inode *in)
{
	fetch(in, 6);
}

/* The items must be sorted, and no longer change. */
static int run_inode(struct delayed_batch *b, const struct delayed_inode *in, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < in->n;) {
		const struct delayed_item *it = in->items[i];

		if (i + AHEAD < in->n)
			fetch(in->items[i + AHEAD], 2);
		if (it->change != DELAYED_OVER)
			i++;
		if (it->change != DELAYED_NONE && (it->change != DELAYED_DELETED || b->num_gone == BATCH_MAX))
			ret = take_gone(b, err);
		if (!ret && it->change != DELAYED_NONE && it->change != DELAYED_NEW)
			ret = put_batch(b, err);
		if (ret)
			break;
		if (it->change == DELAYED_NEW)
			ret = add_to_batch(b, in, it, err);
		else if (it->change == DELAYED_DELETED)
			b->gone[b->num_gone++] = delayed_key(in, it);
		else if (it->change == DELAYED_OVER)
			ret = change_some(b->t, in, &i, err);
	}
	return ret;
}

/* Sorts the items of a shard's inodes. Readers sort them, too, so take the lock. */
static void sort_shard(void *ctx, size_t i)
{
	struct delayed_shard *s = &((struct delayed_tree *)ctx)->shards[i];

	pthread_mutex_lock(&s->lock);
	for (size_t k = 0; k < s->running.size; k++)
		if (s->running.slots[k].in)
			delayed_sort(s->running.slots[k].in);
	pthread_mutex_unlock(&s->lock);
}

/* Collects and sorts the inodes that were taken over. */
static int collect(struct delayed_tree *t, struct sort_entry **ret, size_t *n, struct btrkit_error *err)
{
	struct sort_entry *all = NULL;
	size_t count = 0, room = 0;

	for (unsigned i = 0; i < DELAYED_SHARDS; i++)
		room += t->shards[i].running.n;
	if (room)
		all = reallocarray(NULL, room, sizeof(*all));
	if (room && !all)
		return err_nomem(err);
	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		const struct delayed_table *running = &t->shards[i].running;

		for (size_t k = 0; k < running->size; k++)
			if (running->slots[k].in)
				all[count++] =
					(struct sort_entry){ 0, running->slots[k].objectid, running->slots[k].in };
	}
	sort_entries(all, count);
	*ret = all;
	*n = count;
	return 0;
}

/* Frees a shard's items, all of which are in the tree. */
static void forget_shard(void *ctx, size_t i)
{
	struct delayed_tree *t = ctx;
	struct delayed_shard *s = &t->shards[i];
	struct delayed_table done;

	pthread_mutex_lock(&s->lock);
	done = s->running;
	s->running = delayed_table(t->delayed);
	pthread_mutex_unlock(&s->lock);
	delayed_table_free(&done);
}

/* Frees the memory of inodes that are completely in the tree. It is reused for tree blocks: see slab.h. */
static void release(struct delayed_tree *t, const struct sort_entry *done, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct delayed_inode *in = done[i].what;
		struct delayed_shard *s = delayed_shard_of(t, in->objectid);

		pthread_mutex_lock(&s->lock);
		delayed_inode_empty(in);
		pthread_mutex_unlock(&s->lock);
	}
	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		struct delayed_shard *s = &t->shards[i];

		pthread_mutex_lock(&s->lock);
		pool_release(&s->running.items, done[n - 1].number);
		pthread_mutex_unlock(&s->lock);
	}
}

/*
 * Releases those of the first @n inodes, all of which have been run, that have nothing left in the batch. *@from: first
 * one not released yet
 */
static void release_done(const struct delayed_batch *b, const struct sort_entry *all, size_t *from, size_t n)
{
	const struct delayed_inode *first = all[*from].what;
	size_t end = n;

	if (n - *from < RELEASED_AT_A_TIME && !first->own)
		return;
	/* Deleted items must be known as deleted until they are out of the tree. */
	if (b->num_gone && first->objectid >= b->gone[0].objectid)
		return;
	while (b->n && end > *from && all[end - 1].number >= b->items[0].key.objectid)
		end--;
	while (b->num_gone && end > *from && all[end - 1].number >= b->gone[0].objectid)
		end--;
	if (end > *from)
		release(b->t, all + *from, end - *from);
	*from = end;
}

static int run_tree(struct delayed_tree *t, unsigned threads, struct btrkit_error *err)
{
	struct delayed_batch *b = t->delayed->batch;
	struct sort_entry *all = NULL;
	size_t n = 0, kept = 0;
	int ret;

	b->t = t;
	b->n = b->num_gone = 0;
	b->bytes = 0;
	b->room = leaf_room(t->edit->c.fs->geometry.nodesize);
	each(DELAYED_SHARDS, threads, sort_shard, t);
	ret = collect(t, &all, &n, err);
	for (size_t i = 0; !ret && i < n; i++) {
		if (i + AHEAD < n)
			fetch_inode(all[i + AHEAD].what);
		ret = run_inode(b, all[i].what, err);
		if (!ret)
			release_done(b, all, &kept, i + 1);
	}
	if (!ret)
		ret = take_gone(b, err);
	if (!ret)
		ret = put_batch(b, err);
	free(all);
	if (!ret)
		each(DELAYED_SHARDS, threads, forget_shard, t);
	return ret;
}

int delayed_run_taken(struct delayed *d, struct delayed_tree *t, size_t bytes, struct btrkit_error *err)
{
	const unsigned threads = bytes < BYTES_FOR_THREADS ? 1 : each_processor();
	int ret = 0;

	if (!d->batch)
		d->batch = malloc(sizeof(*d->batch));
	if (!d->batch)
		ret = err_nomem(err);
	for (; !ret && t; t = t->next)
		if (!t->deleted)
			ret = run_tree(t, threads, err);
	if (!ret) {
		sync_lock_trees(&d->txn->sync);
		ret = csums_run(d->txn, err);
		sync_unlock_trees(&d->txn->sync);
	}
	failure_note_any(d->txn->failure, ret, err);
	d->watch.ran(d->watch.ctx);
	return ret;
}
