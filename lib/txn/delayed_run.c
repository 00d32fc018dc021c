// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What waits goes into the trees: inode after inode and key after key, new items by as many as a leaf can hold.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/txn/delayed.h"
#include "lib/txn/txn.h"

/* An item has at least a header, so that a leaf cannot hold more. */
#define BATCH_MAX (65536u / sizeof(struct disk_item))

struct run_inode {
	uint64_t objectid;
	struct delayed_inode *in;
	struct delayed_shard *shard;
};

/* The new items that are collected, one behind the other in the order of keys. */
struct delayed_batch {
	struct delayed_tree *t;
	struct item items[BATCH_MAX];
	size_t n;
	uint32_t bytes, room;
	bool index;
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

void delayed_lock_trees(struct delayed *d)
{
	pthread_rwlock_wrlock(&d->trees);
	pthread_mutex_lock(&d->lock);
}

void delayed_unlock_trees(struct delayed *d)
{
	pthread_mutex_unlock(&d->lock);
	pthread_rwlock_unlock(&d->trees);
}

static int put_batch(struct delayed_batch *b, struct btrkit_error *err)
{
	struct delayed *d = b->t->delayed;
	int ret;

	if (!b->n)
		return 0;
	delayed_lock_trees(d);
	ret = edit_insert_many(b->t->edit, b->items, b->n, err);
	if (!ret)
		count_batch(b);
	delayed_unlock_trees(d);
	/* An item that was not there when it was put here: its tree contradicts itself. */
	if (ret == -EEXIST)
		ret = err_corrupt(err, NULL, "item is there already that no other one speaks of");
	b->n = 0;
	b->bytes = 0;
	return ret;
}

/* Another value for an item of the tree, or none. */
static int change_one(struct delayed_tree *t, const struct delayed_item *it, struct btrkit_error *err)
{
	struct edit_tree *e = t->edit;
	struct delayed *d = t->delayed;
	uint8_t *data;
	uint32_t size;
	int ret;

	delayed_lock_trees(d);
	e->touched |= it->key.type == KEY_INODE_ITEM;
	/* The leaf is copied first, by which the tree gets its own references to what the old item names. */
	ret = edit_bytes(e, &it->key, &data, &size, err);
	if (!ret) {
		const struct item old = { it->key, data, size };

		ret = delayed_change_ref(d, t->id, &old, -1, err);
	}
	if (!ret && it->change == DELAYED_DELETED)
		ret = edit_delete(e, &it->key, err);
	else if (!ret && it->size == size)
		memcpy(data, it->data, size);
	else if (!ret)
		ret = edit_replace(e, &it->key, it->data, it->size, err);
	delayed_unlock_trees(d);
	if (ret == -ENOENT)
		ret = err_corrupt(err, NULL, "item is gone that was there");
	return ret;
}

static int add_to_batch(struct delayed_batch *b, const struct delayed_item *it, struct btrkit_error *err)
{
	const uint32_t bytes = it->size + (uint32_t)sizeof(struct disk_item);
	const bool index = it->key.type == KEY_DIR_INDEX;
	int ret = 0;

	/* Index items of a directory are batches of their own. */
	if (b->n && (b->bytes + bytes > b->room || b->index != index ||
		     (index && b->items[0].key.objectid != it->key.objectid)))
		ret = put_batch(b, err);
	if (ret)
		return ret;
	b->index = index;
	b->items[b->n++] = (struct item){ it->key, it->data, it->size };
	b->bytes += bytes;
	return 0;
}

static int run_inode(struct delayed_batch *b, const struct run_inode *r, struct btrkit_error *err)
{
	struct delayed_inode *in = r->in;
	int ret = 0;

	/* Who reads puts it in order too. */
	pthread_mutex_lock(&r->shard->lock);
	delayed_sort(in);
	pthread_mutex_unlock(&r->shard->lock);
	for (uint32_t i = 0; !ret && i < in->n; i++) {
		const struct delayed_item *it = in->items[i];

		if (it->change == DELAYED_NEW) {
			ret = add_to_batch(b, it, err);
		} else if (it->change != DELAYED_NONE) {
			ret = put_batch(b, err);
			if (!ret)
				ret = change_one(b->t, it, err);
		}
	}
	return ret;
}

static int by_objectid(const void *a, const void *b)
{
	const struct run_inode *x = a, *y = b;

	return x->objectid < y->objectid ? -1 : x->objectid > y->objectid;
}

/* Takes over what waits: from here on changes are collected anew. With the gate closed. */
static void take_over(struct delayed *d)
{
	for (struct delayed_tree *t = d->list; t; t = t->next) {
		for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
			t->shards[i].running = t->shards[i].now;
			t->shards[i].now = (struct delayed_table){ 0 };
		}
	}
	atomic_store(&d->bytes, 0);
	tickets_run(&d->tickets);
}

/* The inodes that are taken over, in order. */
static int collect(struct delayed_tree *t, struct run_inode **ret, size_t *n, struct btrkit_error *err)
{
	struct run_inode *all = NULL;
	size_t count = 0, room = 0;

	for (unsigned i = 0; i < DELAYED_SHARDS; i++)
		room += t->shards[i].running.n;
	if (room)
		all = reallocarray(NULL, room, sizeof(*all));
	if (room && !all)
		return err_nomem(err);
	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		struct delayed_shard *s = &t->shards[i];

		for (size_t k = 0; k < s->running.size; k++) {
			struct delayed_inode *in = s->running.slots[k].in;

			if (in)
				all[count++] = (struct run_inode){ in->objectid, in, s };
		}
	}
	if (count)
		qsort(all, count, sizeof(*all), by_objectid);
	*ret = all;
	*n = count;
	return 0;
}

static int run_tree(struct delayed_tree *t, struct btrkit_error *err)
{
	struct delayed_batch *b = t->delayed->batch;
	struct run_inode *all = NULL;
	size_t n = 0;
	int ret;

	b->t = t;
	b->n = 0;
	b->bytes = 0;
	b->room = leaf_room(t->edit->c.fs->items.nodesize);
	ret = collect(t, &all, &n, err);
	for (size_t i = 0; !ret && i < n; i++)
		ret = run_inode(b, &all[i], err);
	if (!ret)
		ret = put_batch(b, err);
	free(all);
	if (ret)
		return ret;
	/* All of it is in the tree now. */
	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		struct delayed_shard *s = &t->shards[i];
		struct delayed_table done;

		pthread_mutex_lock(&s->lock);
		done = s->running;
		s->running = (struct delayed_table){ 0 };
		pthread_mutex_unlock(&s->lock);
		delayed_table_free(&done);
	}
	return 0;
}

static int run_all(struct delayed *d, struct delayed_tree *t, struct btrkit_error *err)
{
	int ret = 0;

	if (!d->batch)
		d->batch = malloc(sizeof(*d->batch));
	if (!d->batch)
		ret = err_nomem(err);
	for (; !ret && t; t = t->next)
		if (!t->deleted)
			ret = run_tree(t, err);
	if (!ret) {
		delayed_lock_trees(d);
		ret = csums_run(d->txn, err);
		delayed_unlock_trees(d);
	}
	if (ret)
		atomic_store(&d->failed, true);
	tickets_ran(&d->tickets);
	return ret;
}

void delayed_close(struct delayed *d)
{
	pthread_mutex_lock(&d->run);
	gate_close(&d->gate);
}

void delayed_open(struct delayed *d)
{
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->run);
}

void delayed_forget_tree(struct delayed *d, uint64_t id)
{
	for (struct delayed_tree *t = d->list; t; t = t->next)
		t->deleted |= t->id == id;
}

void delayed_set_read_only(struct delayed *d, uint64_t id, bool read_only)
{
	for (struct delayed_tree *t = d->list; t; t = t->next)
		if (t->id == id)
			t->read_only = read_only;
}

int delayed_run(struct delayed *d, struct btrkit_error *err)
{
	struct delayed_tree *t;
	int ret;

	delayed_close(d);
	take_over(d);
	t = d->list;
	gate_open(&d->gate);
	ret = run_all(d, t, err);
	pthread_mutex_unlock(&d->run);
	return ret;
}

int delayed_run_alone(struct delayed *d, struct btrkit_error *err)
{
	take_over(d);
	return run_all(d, d->list, err);
}
