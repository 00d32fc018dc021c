// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables of inodes with delayed items, by objectid, and of their items, by key. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/big.h"
#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/delayed/impl.h"

/* An inode with more items gets an index. */
#define SEARCHED_ONE_BY_ONE 8u

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 32;
}

/* Four consecutive numbers are adjacent in a table, and thus in one cache line. */
static uint64_t hash_number(uint64_t x)
{
	return mix(x >> 2) << 2 | (x & 3);
}

/* Hashes within a shard. */
static uint64_t hash_inode(uint64_t inode)
{
	return hash_number(inode / DELAYED_SHARDS);
}

struct delayed_table delayed_table(const struct delayed *d)
{
	struct stock *stock = &d->txn->fs->stock;

	return (struct delayed_table){ .inodes = { .stock = stock }, .items = { .stock = stock } };
}

void delayed_inode_empty(struct delayed_inode *in)
{
	if (in->items != in->few)
		free(in->items);
	big_free(in->index, in->index_size * sizeof(*in->index));
	if (in->own)
		pool_free(in->own);
	in->items = in->few;
	in->room = DELAYED_FEW;
	in->index = NULL;
	in->own = NULL;
	in->n = in->sorted = in->index_size = 0;
	in->fresh = false;
}

void delayed_table_free(struct delayed_table *t)
{
	for (size_t i = 0; i < t->size; i++) {
		if (t->slots[i].in)
			delayed_inode_empty(t->slots[i].in);
	}
	big_free(t->slots, t->size * sizeof(*t->slots));
	t->slots = NULL;
	t->size = t->n = 0;
	pool_free(&t->inodes);
	pool_free(&t->items);
}

/* The slot of the inode, or the free slot where it would be. */
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
		in = pool_take(&t->inodes, sizeof(*in), 8);
		if (!in)
			return err_nomem(err);
		*in = (struct delayed_inode){ .objectid = objectid, .items = in->few, .room = DELAYED_FEW };
		*slot_of(t->slots, t->size, objectid) = (struct delayed_slot){ objectid, in };
		t->n++;
	}
	*ret = in;
	return 0;
}

int delayed_inode_move(struct delayed_table *to, struct delayed_inode *in)
{
	struct pool *own = pool_take(&to->inodes, sizeof(*own), 8);
	struct delayed_inode *moved;

	if (!own || delayed_inode_get(to, in->objectid, &moved, NULL))
		return -ENOMEM;
	*moved = *in;
	*own = *in->own;
	moved->own = own;
	in->own = NULL;
	in->items = in->few;
	in->index = NULL;
	delayed_inode_empty(in);
	return 0;
}

static uint64_t hash_key(uint8_t type, uint64_t offset)
{
	return hash_number(offset + ((uint64_t)type << 56));
}

/* The slot of the item with a key, or the free slot where it would be. */
static struct delayed_place *index_slot(struct delayed_place *index, uint32_t size, const struct btrkit_key *key)
{
	const uint64_t hash = hash_key(key->type, key->offset);
	uint32_t i = (uint32_t)hash & (size - 1);

	while (index[i].item && (index[i].hash != hash || delayed_cmp(index[i].item, key)))
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
		if (!delayed_cmp(in->items[i], key))
			return in->items[i];
	}
	return NULL;
}

/* Copies the items to a pool. @return whether there was memory for all */
static bool copy_items(const struct delayed_inode *in, struct pool *to, struct delayed_item **ret)
{
	for (uint32_t i = 0; i < in->n; i++) {
		const struct delayed_item *from = in->items[i];
		const size_t head = offsetof(struct delayed_item, data);

		ret[i] = pool_take_marked(to, head + from->room, 8, in->objectid);
		if (!ret[i])
			return false;
		memcpy(ret[i], from, head + from->size);
	}
	return true;
}

/*
 * Moves the items to a pool of the inode, so that they can be moved to another table. Without memory they stay where
 * they are: only the operation that adds one fails.
 */
static int make_own(struct delayed_table *t, struct delayed_inode *in, struct btrkit_error *err)
{
	struct pool *own = pool_take(&t->inodes, sizeof(*own), 8);
	struct delayed_item **items = own ? reallocarray(NULL, in->n, sizeof(struct delayed_item *)) : NULL;

	if (!items)
		return err_nomem(err);
	*own = (struct pool){ .stock = t->items.stock };
	if (!copy_items(in, own, items)) {
		pool_free(own);
		free(items);
		return err_nomem(err);
	}
	memcpy(in->items, items, in->n * sizeof(struct delayed_item *));
	free(items);
	in->own = own;
	return 0;
}

static int grow_index(struct delayed_table *t, struct delayed_inode *in, struct btrkit_error *err)
{
	const uint32_t size = in->index_size ? in->index_size * 2 : 64;
	struct delayed_place *index;
	int ret;

	if (size > UINT32_MAX / 4)
		return err_nomem(err);
	ret = in->own ? 0 : make_own(t, in, err);
	if (ret)
		return ret;
	index = big_take(size * sizeof(*index));
	if (!index)
		return err_nomem(err);
	for (uint32_t i = 0; !in->index_size && i < in->n; i++)
		put_in_index(index, size, hash_key(in->items[i]->type, in->items[i]->offset), in->items[i]);
	for (uint32_t i = 0; i < in->index_size; i++) {
		if (in->index[i].item)
			put_in_index(index, size, in->index[i].hash, in->index[i].item);
	}
	big_free(in->index, in->index_size * sizeof(*in->index));
	in->index = index;
	in->index_size = size;
	return 0;
}

static int make_room(struct delayed_table *t, struct delayed_inode *in, struct btrkit_error *err)
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
	return in->n >= SEARCHED_ONE_BY_ONE && in->n * 2 >= in->index_size ? grow_index(t, in, err) : 0;
}

static struct delayed_item *new_item(struct delayed_table *t, struct delayed_inode *in, const struct btrkit_key *key,
				     uint32_t size)
{
	struct delayed_item *it = pool_take_marked(in->own ? in->own : &t->items,
						   offsetof(struct delayed_item, data) + size, 8, in->objectid);

	if (it) {
		/*
		 * Set the members one by one: the allocation may be smaller than the struct, whose data begins in its
		 * padding.
		 */
		it->offset = key->offset;
		it->type = key->type;
		it->size = 0;
		it->room = (uint16_t)size;
		it->change = DELAYED_NONE;
	}
	return it;
}

int delayed_item_add(struct delayed_table *t, struct delayed_inode *in, const struct btrkit_key *key, uint32_t size,
		     struct delayed_item **ret, struct btrkit_error *err)
{
	struct delayed_item *it;
	int r = make_room(t, in, err);

	if (r)
		return r;
	it = new_item(t, in, key, size);
	if (!it)
		return err_nomem(err);
	if (in->index_size)
		put_in_index(in->index, in->index_size, hash_key(key->type, key->offset), it);
	if (in->sorted == in->n && (!in->n || delayed_cmp(in->items[in->n - 1], key) < 0))
		in->sorted++;
	in->items[in->n++] = it;
	*ret = it;
	return 0;
}

int delayed_item_set(struct delayed_table *t, struct delayed_inode *in, struct delayed_item **at, const void *data,
		     uint32_t size, struct btrkit_error *err)
{
	struct delayed_item *it = *at;

	if (size > it->room) {
		const struct btrkit_key key = delayed_key(in, it);

		it = new_item(t, in, &key, size);
		if (!it)
			return err_nomem(err);
		it->change = (*at)->change;
		if (in->index_size)
			index_slot(in->index, in->index_size, &key)->item = it;
		for (uint32_t i = in->n; i-- > 0;) {
			if (in->items[i] == *at) {
				in->items[i] = it;
				break;
			}
		}
		*at = it;
	}
	it->size = (uint16_t)size;
	if (data && size)
		memcpy(it->data, data, size);
	return 0;
}
