// SPDX-License-Identifier: LGPL-2.1-or-later
/* Delayed items as operations change them: tables of inodes, their locks. */
#include "lib/txn/delayed.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/big.h"
#include "lib/base/err.h"
#include "lib/format/items/file_extent.h"
#include "lib/txn/txn.h"

/* An inode with more items gets an index of them. */
#define SEARCHED_ONE_BY_ONE 8u

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 32;
}

/* Numbers that come one after the other lie by fours beside each other in a table: in one line of the cache. */
static uint64_t hash_number(uint64_t x)
{
	return mix(x >> 2) << 2 | (x & 3);
}

/* Those who make inodes at the same time have different ones. */
struct delayed_shard *delayed_shard_of(struct delayed_tree *t, uint64_t inode)
{
	return &t->shards[inode % DELAYED_SHARDS];
}

/* Within its shard. */
static uint64_t hash_inode(uint64_t inode)
{
	return hash_number(inode / DELAYED_SHARDS);
}

int delayed_create(struct btrkit_txn *txn, struct delayed **ret, struct btrkit_error *err)
{
	struct delayed *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(err);
	d->txn = txn;
	gate_init(&d->gate);
	pthread_rwlock_init(&d->trees, NULL);
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->run, NULL);
	pthread_mutex_init(&d->renames, NULL);
	pthread_mutex_init(&d->failure.lock, NULL);
	tickets_init(&d->tickets);
	*ret = d;
	return 0;
}

void delayed_table_free(struct delayed_table *t)
{
	for (size_t i = 0; i < t->size; i++) {
		struct delayed_inode *in = t->slots[i].in;

		if (in && in->items != in->few)
			free(in->items);
		if (in)
			big_free(in->index, in->index_size * sizeof(*in->index));
	}
	big_free(t->slots, t->size * sizeof(*t->slots));
	pool_free(&t->pool);
	*t = (struct delayed_table){ 0 };
}

struct delayed *delayed_destroy(struct delayed *d)
{
	if (!d)
		return NULL;
	while (d->list) {
		struct delayed_tree *t = d->list;

		d->list = t->next;
		for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
			delayed_table_free(&t->shards[i].now);
			delayed_table_free(&t->shards[i].running);
			pthread_mutex_destroy(&t->shards[i].lock);
		}
		free(t);
	}
	tickets_destroy(&d->tickets);
	pthread_mutex_destroy(&d->failure.lock);
	pthread_mutex_destroy(&d->renames);
	pthread_mutex_destroy(&d->run);
	pthread_mutex_destroy(&d->lock);
	pthread_rwlock_destroy(&d->trees);
	gate_destroy(&d->gate);
	free(d->batch);
	free(d);
	return NULL;
}

static int find_edit_tree(struct delayed_tree *t, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_txn *txn = t->delayed->txn;
	struct root_item item;
	struct tree_root root;
	int ret;

	ret = oid_is_file_tree(id) ? fs_find_root(txn->fs, id, &root, &item, err) : -ENOENT;
	if (ret == -ENOENT || (!ret && !item.refs))
		return err_set(err, BTRKIT_NOT_FOUND, "no subvolume %" PRIu64, id);
	if (!ret)
		ret = overlay_tree(txn->overlay, id, &t->edit, err);
	if (ret)
		return ret;
	t->blocks = item.bytes_used / txn->fs->super.nodesize;
	t->read_only = item.flags & ROOT_SUBVOL_RDONLY;
	return 0;
}

int delayed_go_on(struct delayed *d, struct btrkit_error *err)
{
	int ret = 0;

	atomic_store(&d->full, false);
	for (struct delayed_tree *t = d->list; !ret && t; t = t->next)
		if (!t->deleted)
			ret = find_edit_tree(t, t->id, err);
	return ret;
}

/* With the locks. */
static int open_tree(struct delayed *d, uint64_t id, struct delayed_tree **ret, struct btrkit_error *err)
{
	struct delayed_tree *t;
	int r;

	for (t = d->list; t; t = t->next) {
		if (t->id == id && !t->deleted) {
			*ret = t;
			return 0;
		}
	}
	/* After a commit has failed there are none. */
	r = delayed_judge(d, err);
	if (r)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_nomem(err);
	t->delayed = d;
	t->id = id;
	r = find_edit_tree(t, id, err);
	if (r) {
		free(t);
		return r;
	}
	for (unsigned i = 0; i < DELAYED_SHARDS; i++)
		pthread_mutex_init(&t->shards[i].lock, NULL);
	t->next = d->list;
	d->list = t;
	/* Another tree has other blocks that changes may copy. */
	tickets_recall(&d->tickets);
	*ret = t;
	return 0;
}

int delayed_tree(struct delayed *d, uint64_t id, struct delayed_tree **ret, struct btrkit_error *err)
{
	struct delayed_tree *t;
	int r;

	/* Who has been there stays, and so does what is behind it. */
	for (t = d->list; t && (t->id != id || t->deleted); t = t->next)
		;
	*ret = t;
	if (t)
		return 0;
	pthread_rwlock_wrlock(&d->trees);
	r = open_tree(d, id, ret, err);
	pthread_rwlock_unlock(&d->trees);
	return r;
}

/* Where the inode is in the table, or would be: there is a free slot. */
static struct delayed_slot *slot_of(struct delayed_slot *slots, size_t size, uint64_t objectid)
{
	size_t i = hash_inode(objectid) & (size - 1);

	while (slots[i].in && slots[i].objectid != objectid)
		i = (i + 1) & (size - 1);
	return &slots[i];
}

struct delayed_inode *delayed_table_find(const struct delayed_table *t, uint64_t objectid)
{
	return t->size ? slot_of(t->slots, t->size, objectid)->in : NULL;
}

static int grow_table(struct delayed_table *t, struct btrkit_error *err)
{
	const size_t size = t->size ? t->size * 2 : 16;
	struct delayed_slot *slots = big_take(size * sizeof(*slots));

	if (!slots)
		return err_nomem(err);
	for (size_t i = 0; i < t->size; i++) {
		if (t->slots[i].in)
			*slot_of(slots, size, t->slots[i].objectid) = t->slots[i];
	}
	big_free(t->slots, t->size * sizeof(*t->slots));
	t->slots = slots;
	t->size = size;
	return 0;
}

int delayed_inode_get(struct delayed_table *t, uint64_t objectid, struct delayed_inode **ret, struct btrkit_error *err)
{
	struct delayed_inode *in = delayed_table_find(t, objectid);
	int r;

	if (!in) {
		r = t->n * 2 >= t->size ? grow_table(t, err) : 0;
		if (r)
			return r;
		in = pool_take(&t->pool, sizeof(*in), 8);
		if (!in)
			return err_nomem(err);
		*in = (struct delayed_inode){ .objectid = objectid, .items = in->few, .room = DELAYED_FEW };
		*slot_of(t->slots, t->size, objectid) = (struct delayed_slot){ objectid, in };
		t->n++;
	}
	*ret = in;
	return 0;
}

static uint64_t hash_key(const struct btrkit_key *key)
{
	return hash_number(key->offset + ((uint64_t)key->type << 56));
}

static bool same_place(const struct btrkit_key *a, const struct btrkit_key *b)
{
	return a->offset == b->offset && a->type == b->type;
}

/* Where the item with a key is in the index, or would be. */
static struct delayed_place *index_slot(struct delayed_place *index, uint32_t size, const struct btrkit_key *key)
{
	const uint64_t hash = hash_key(key);
	uint32_t i = (uint32_t)hash & (size - 1);

	while (index[i].item && (index[i].hash != hash || !same_place(&index[i].item->key, key)))
		i = (i + 1) & (size - 1);
	return &index[i];
}

static void put_in_index(struct delayed_place *index, uint32_t size, uint64_t hash, struct delayed_item *it)
{
	uint32_t i = (uint32_t)hash & (size - 1);

	while (index[i].item)
		i = (i + 1) & (size - 1);
	index[i] = (struct delayed_place){ hash, it };
}

struct delayed_item *delayed_inode_find(const struct delayed_inode *in, const struct btrkit_key *key)
{
	if (in->index_size)
		return index_slot(in->index, in->index_size, key)->item;
	for (uint32_t i = 0; i < in->n; i++) {
		if (same_place(&in->items[i]->key, key))
			return in->items[i];
	}
	return NULL;
}

static int grow_index(struct delayed_inode *in, struct btrkit_error *err)
{
	const uint32_t size = in->index_size ? in->index_size * 2 : 64;
	struct delayed_place *index;

	if (size > UINT32_MAX / 4)
		return err_nomem(err);
	index = big_take(size * sizeof(*index));
	if (!index)
		return err_nomem(err);
	for (uint32_t i = 0; !in->index_size && i < in->n; i++)
		put_in_index(index, size, hash_key(&in->items[i]->key), in->items[i]);
	for (uint32_t i = 0; i < in->index_size; i++) {
		if (in->index[i].item)
			put_in_index(index, size, in->index[i].hash, in->index[i].item);
	}
	big_free(in->index, in->index_size * sizeof(*in->index));
	in->index = index;
	in->index_size = size;
	return 0;
}

static int make_room(struct delayed_inode *in, struct btrkit_error *err)
{
	struct delayed_item **items;

	if (in->n == in->room) {
		if (in->room > UINT32_MAX / 4)
			return err_nomem(err);
		items = reallocarray(in->items == in->few ? NULL : in->items, 2 * (size_t)in->room,
				     sizeof(struct delayed_item *));
		if (!items)
			return err_nomem(err);
		if (in->items == in->few)
			memcpy(items, in->few, sizeof(in->few));
		in->items = items;
		in->room *= 2;
	}
	return in->n >= SEARCHED_ONE_BY_ONE && in->n * 2 >= in->index_size ? grow_index(in, err) : 0;
}

static struct delayed_item *new_item(struct delayed_table *t, const struct btrkit_key *key, uint32_t size)
{
	struct delayed_item *it = pool_take(&t->pool, offsetof(struct delayed_item, data) + size, 8);

	if (it) {
		/* The bytes begin before the end that the struct would have. */
		it->key = *key;
		it->size = 0;
		it->room = size;
		it->change = DELAYED_NONE;
	}
	return it;
}

static int add_item(struct delayed_table *t, struct delayed_inode *in, const struct btrkit_key *key, uint32_t size,
		    struct delayed_item **ret, struct btrkit_error *err)
{
	struct delayed_item *it;
	int r = make_room(in, err);

	if (r)
		return r;
	it = new_item(t, key, size);
	if (!it)
		return err_nomem(err);
	if (in->index_size)
		put_in_index(in->index, in->index_size, hash_key(key), it);
	if (in->sorted == in->n && (!in->n || key_cmp(&in->items[in->n - 1]->key, key) < 0))
		in->sorted++;
	in->items[in->n++] = it;
	*ret = it;
	return 0;
}

/* Puts bytes into an item that is known, which may have to move for that. */
static int set_data(struct delayed_table *t, struct delayed_inode *in, struct delayed_item **at, const void *data,
		    uint32_t size, struct btrkit_error *err)
{
	struct delayed_item *it = *at;

	if (size > it->room) {
		it = new_item(t, &(*at)->key, size);
		if (!it)
			return err_nomem(err);
		it->change = (*at)->change;
		if (in->index_size)
			index_slot(in->index, in->index_size, &it->key)->item = it;
		for (uint32_t i = in->n; i-- > 0;) {
			if (in->items[i] == *at) {
				in->items[i] = it;
				break;
			}
		}
		*at = it;
	}
	it->size = size;
	if (data && size)
		memcpy(it->data, data, size);
	return 0;
}

int delayed_change_ref(struct delayed *d, uint64_t tree, const struct item *item, int add, struct btrkit_error *err)
{
	struct extent_change change;
	struct file_extent fe;
	int ret;

	if (item->key.type != KEY_EXTENT_DATA)
		return 0;
	ret = file_extent_decode(&d->txn->fs->items, item, &fe, err);
	if (ret || fe.type == FILE_EXTENT_INLINE || !fe.disk_bytenr)
		return ret;
	change = (struct extent_change){ .bytenr = fe.disk_bytenr,
					 .num_bytes = fe.disk_num_bytes,
					 .data = true,
					 .ref = { .type = KEY_EXTENT_DATA_REF,
						  .root = tree,
						  .objectid = item->key.objectid,
						  .offset = item->key.offset - fe.offset },
					 .add = add };
	return txn_change_data_ref(d->txn, &change, err);
}

/* The reference of what an item was, or is now. */
static int change_ref(struct delayed_tree *t, const struct delayed_item *it, int add, struct btrkit_error *err)
{
	const struct item item = { it->key, it->data, it->size };
	struct delayed *d = t->delayed;
	int ret;

	if (it->key.type != KEY_EXTENT_DATA)
		return 0;
	pthread_mutex_lock(&d->lock);
	ret = delayed_change_ref(d, t->id, &item, add, err);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

static int judge_size(const struct delayed_tree *t, uint32_t size, struct btrkit_error *err)
{
	if (size > leaf_room(t->delayed->txn->fs->super.nodesize) - sizeof(struct disk_item))
		return err_set(err, BTRKIT_INVALID, "an item of %" PRIu32 " bytes fits into no leaf", size);
	return 0;
}

static int no_such_item(const struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_set(err, BTRKIT_NOT_FOUND, "no such item");

	err_at_tree(err, t->id);
	err_at_key(err, key);
	return ret;
}

static int there_already(const struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_system(err, EEXIST, "item is there already");

	err_at_tree(err, t->id);
	err_at_key(err, key);
	return ret;
}

/* Passes on what a change returned; what may have been half done is noted. */
static int ended(struct delayed_tree *t, int ret, const struct btrkit_error *err)
{
	if (ret && ret != -EEXIST && ret != -ENOENT && ret != -EINVAL)
		delayed_fail(t->delayed, ret, err);
	return ret;
}

/*
 * The items of a new inode go to one place, one behind the other; but its index items are batches of their own, so that
 * its entries are counted.
 */
static void count_item(struct delayed_tree *t, const struct delayed_inode *in, const struct btrkit_key *key,
		       uint32_t size)
{
	struct delayed_shard *s = delayed_shard_of(t, key->objectid);

	s->bytes += offsetof(struct delayed_item, data) + size + 3 * sizeof(void *);
	s->places += !in->fresh || in->n == 1 || key->type == KEY_DIR_ITEM || key->type == KEY_DIR_INDEX;
}

int delayed_new_inode(struct delayed_tree *t, uint64_t inode, struct btrkit_error *err)
{
	struct delayed_inode *in;
	int ret = delayed_inode_get(&delayed_shard_of(t, inode)->now, inode, &in, err);

	if (!ret)
		in->fresh = true;
	return ended(t, ret, err);
}

static int put(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size, bool insert,
	       uint8_t **ret, struct btrkit_error *err)
{
	struct delayed_table *table = &delayed_shard_of(t, key->objectid)->now;
	struct delayed_inode *in;
	struct delayed_item *it;
	bool there;
	int r;

	r = delayed_inode_get(table, key->objectid, &in, err);
	if (r)
		return r;
	it = delayed_inode_find(in, key);
	there = it && (it->change == DELAYED_NEW || it->change == DELAYED_OVER);
	if (insert && there)
		return there_already(t, key, err);
	if (!insert && it && !there)
		return no_such_item(t, key, err);
	if (it) {
		if (there)
			r = change_ref(t, it, -1, err);
		else
			it->change = it->change == DELAYED_DELETED ? DELAYED_OVER : DELAYED_NEW;
	} else {
		r = add_item(table, in, key, size, &it, err);
		if (r)
			return r;
		it->change = insert ? DELAYED_NEW : DELAYED_OVER;
		count_item(t, in, key, size);
	}
	if (!r)
		r = set_data(table, in, &it, data, size, err);
	if (!r && data)
		r = change_ref(t, it, 1, err);
	if (!r && ret)
		*ret = it->data;
	return r;
}

int delayed_insert(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		   uint8_t **ret, struct btrkit_error *err)
{
	int r = judge_size(t, size, err);

	return ended(t, r ? r : put(t, key, data, size, true, ret, err), err);
}

int delayed_replace(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		    struct btrkit_error *err)
{
	int r = judge_size(t, size, err);

	return ended(t, r ? r : put(t, key, data, size, false, NULL, err), err);
}

int delayed_delete(struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct delayed_table *table = &delayed_shard_of(t, key->objectid)->now;
	struct delayed_inode *in;
	struct delayed_item *it;
	int ret;

	ret = delayed_inode_get(table, key->objectid, &in, err);
	if (ret)
		return ended(t, ret, err);
	it = delayed_inode_find(in, key);
	if (!it) {
		ret = add_item(table, in, key, 0, &it, err);
		if (!ret) {
			it->change = DELAYED_DELETED;
			count_item(t, in, key, 0);
		}
		return ended(t, ret, err);
	}
	if (it->change != DELAYED_NEW && it->change != DELAYED_OVER)
		return no_such_item(t, key, err);
	it->change = it->change == DELAYED_NEW ? DELAYED_NONE : DELAYED_DELETED;
	return ended(t, change_ref(t, it, -1, err), err);
}
