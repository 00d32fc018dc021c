// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/edit_path.h"

int edit_ended(struct edit_tree *t, int ret, const struct btrkit_error *err)
{
	return failure_note_fatal(t->overlay->failure, ret, err);
}

static uint8_t *bytes_at(struct node *leaf, uint32_t slot)
{
	return data_of(leaf) + le32_get(leaf_items(leaf)[slot].offset);
}

bool edit_separator(const struct edit_tree *t, struct btrkit_key *key)
{
	const struct cursor *c = &t->c;

	for (unsigned level = 1; level <= c->root.level; level++) {
		if (c->slots[level] + 1 < c->nodes[level]->nritems) {
			*key = node_key(c->nodes[level], c->slots[level] + 1);
			return true;
		}
	}
	return false;
}

/* Whether a search for @key would end in the leaf of the path. */
static bool belongs_here(const struct edit_tree *t, const struct btrkit_key *key)
{
	const struct cursor *c = &t->c;
	const struct node *leaf = c->nodes[0];
	struct btrkit_key at;

	if (!leaf || !leaf->nritems || !c->nodes[c->root.level])
		return false;
	at = node_key(leaf, 0);
	if (key_cmp(key, &at) < 0)
		return false;
	at = node_key(leaf, leaf->nritems - 1);
	return key_cmp(key, &at) <= 0 || !edit_separator(t, &at) || key_cmp(key, &at) < 0;
}

int edit_find_leaf(struct edit_tree *t, const struct btrkit_key *key, bool *exact, struct btrkit_error *err)
{
	if (!belongs_here(t, key)) {
		int ret = cursor_descend(&t->c, key, 0, err);

		if (ret)
			return ret;
	}
	t->c.slots[0] = node_lower_bound(t->c.nodes[0], key, exact);
	return 0;
}

int edit_no_such_item(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_set(err, BTRKIT_NOT_FOUND, "no such item");

	err_at_tree(err, tree);
	err_at_key(err, key);
	return ret;
}

int edit_there_already(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_system(err, EEXIST, "item exists already");

	err_at_tree(err, tree);
	err_at_key(err, key);
	return ret;
}

int edit_find_item(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	bool exact;
	int ret = edit_find_leaf(t, key, &exact, err);

	if (ret)
		return ret;
	return exact ? edit_cow_path(t, 0, err) : edit_no_such_item(t->c.root.id, key, err);
}

static uint32_t item_bytes(const struct item *item)
{
	return (uint32_t)sizeof(struct disk_item) + item->size;
}

/*
 * Number of items that can be inserted at the path's slot without a gap: those before the next key in the leaf or, at
 * its end, in the tree. @bytes: their size
 */
static size_t run_length(const struct edit_tree *t, const struct item *items, size_t n, uint64_t *bytes)
{
	const struct node *leaf = t->c.nodes[0];
	struct btrkit_key limit;
	bool limited = true;
	size_t run = 0;

	if (t->c.slots[0] < leaf->nritems)
		limit = node_key(leaf, t->c.slots[0]);
	else
		limited = edit_separator(t, &limit);
	*bytes = 0;
	/* No more than two leaves' worth is needed. */
	while (run < n && *bytes < 2ull * leaf->size && (!limited || key_cmp(&items[run].key, &limit) < 0))
		*bytes += item_bytes(&items[run++]);
	return run;
}

/* Inserts items at the path's slot, where they fit. The slot is then after them. */
static void put_items(struct edit_tree *t, const struct item *items, size_t n)
{
	struct node *leaf = t->c.nodes[0];
	const uint32_t slot = t->c.slots[0];
	uint32_t at, bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += items[i].size;
	leaf_open(leaf, slot, (uint32_t)n, bytes);
	at = slot ? le32_get(leaf_items(leaf)[slot - 1].offset) : leaf_room(leaf->size);
	for (size_t i = 0; i < n; i++) {
		at -= items[i].size;
		items_of(leaf)[slot + i] =
			(struct disk_item){ key_put(&items[i].key), le32_put(at), le32_put(items[i].size) };
		if (items[i].size)
			memcpy(data_of(leaf) + at, items[i].data, items[i].size);
	}
	if (!slot)
		edit_fix_first_key(t, 0);
	t->c.slots[0] += (uint32_t)n;
}

/* Size of the items of a leaf from @from on and before @end. */
static uint64_t bytes_between(const struct node *leaf, uint32_t from, uint32_t end)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < end; i++)
		sum += leaf_item_bytes(leaf, i);
	return sum;
}

/* Where to split a full leaf for a few bytes at the slot, so that both halves have about the same size. */
static uint32_t middle(const struct node *leaf, uint32_t slot, uint64_t bytes)
{
	const uint64_t half = (leaf_used(leaf) + bytes) / 2;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < leaf->nritems; i++) {
		if (i == slot)
			sum += bytes;
		if (sum >= half)
			break;
		sum += leaf_item_bytes(leaf, i);
	}
	return i ? i : 1;
}

/* Whether a leaf split at @at has room for bytes at the slot, in the half with that slot. */
static bool half_has_room(const struct node *leaf, uint32_t slot, uint32_t at, uint64_t bytes)
{
	const uint64_t half = slot <= at ? bytes_between(leaf, 0, at) : bytes_between(leaf, at, leaf->nritems);

	return at < leaf->nritems && half + bytes <= leaf_room(leaf->size);
}

/*
 * Splits the leaf of the path, which has no room for an item at its slot. Appended items get a new leaf. If the run
 * fits into half a leaf, split in the middle, provided that the half with the slot has room. Otherwise move what is
 * after the slot to a new leaf; if the run fits only there, it is inserted before it. So there is one new leaf, and
 * more only if the run fills half a leaf.
 */
static int make_room(struct edit_tree *t, const struct item *items, size_t run, uint64_t bytes, size_t *put,
		     struct btrkit_error *err)
{
	const struct node *leaf = t->c.nodes[0];
	const uint32_t slot = t->c.slots[0], room = leaf_room(leaf->size);
	const uint32_t at = middle(leaf, slot, bytes);
	bool before;
	int ret;

	*put = 0;
	if (slot == leaf->nritems)
		return edit_append_leaf(t, &items->key, err);
	if (bytes <= room / 2 && half_has_room(leaf, slot, at, bytes))
		return edit_split_leaf(t, at, false, err);
	before = bytes_between(leaf, 0, slot) + item_bytes(items) > room &&
		 bytes_between(leaf, slot, leaf->nritems) + bytes <= room;
	ret = edit_split_leaf(t, slot, before, err);
	if (ret || !before)
		return ret;
	put_items(t, items, run);
	*put = run;
	return 0;
}

static int check_batch(const struct edit_tree *t, const struct item *items, size_t n, struct btrkit_error *err)
{
	const uint32_t room = leaf_room(t->overlay->fs->geometry.nodesize);

	for (size_t i = 0; i < n; i++) {
		if (items[i].size > room - sizeof(struct disk_item))
			return err_set(err, BTRKIT_INVALID, "item of %" PRIu32 " bytes is too large for a leaf",
				       items[i].size);
		if (i && key_cmp(&items[i - 1].key, &items[i].key) >= 0)
			return err_set(err, BTRKIT_INVALID, "items of a batch are out of order");
	}
	return 0;
}

int edit_insert_many(struct edit_tree *t, const struct item *items, size_t n, struct btrkit_error *err)
{
	bool exact;
	int ret;

	ret = check_batch(t, items, n, err);
	while (!ret && n) {
		uint32_t room;
		uint64_t bytes;
		size_t run, fit = 0;

		ret = edit_find_leaf(t, &items->key, &exact, err);
		if (!ret && exact)
			ret = edit_there_already(t->c.root.id, &items->key, err);
		if (!ret)
			ret = edit_cow_path(t, 0, err);
		if (ret)
			break;
		run = run_length(t, items, n, &bytes);
		for (room = leaf_free(t->c.nodes[0]); fit < run && item_bytes(&items[fit]) <= room; fit++)
			room -= item_bytes(&items[fit]);
		if (fit) {
			put_items(t, items, fit);
		} else if (t->c.slots[0] == t->c.nodes[0]->nritems || !edit_push(t, item_bytes(items))) {
			ret = make_room(t, items, run, bytes, &fit, err);
		}
		items += fit;
		n -= fit;
	}
	return edit_ended(t, ret, err);
}

int edit_insert(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		struct btrkit_error *err)
{
	const struct item item = { *key, data, size };

	return edit_insert_many(t, &item, 1, err);
}

int edit_replace(struct edit_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		 struct btrkit_error *err)
{
	const struct item item = { *key, data, size };
	struct node *leaf;
	uint32_t old, slot;
	int ret;

	ret = check_batch(t, &item, 1, err);
	if (!ret)
		ret = edit_find_item(t, key, err);
	if (ret)
		return edit_ended(t, ret, err);
	leaf = t->c.nodes[0];
	slot = t->c.slots[0];
	old = le32_get(leaf_items(leaf)[slot].size);
	if (!data && size > old)
		return err_set(err, BTRKIT_INVALID, "an item of %" PRIu32 " bytes cannot be shortened to %" PRIu32, old,
			       size);
	if (size > old && size - old > leaf_free(leaf)) {
		/* The leaf's key in its parents remains valid, because the item becomes the first of a leaf again. */
		leaf_close(leaf, slot, 1);
		return edit_insert_many(t, &item, 1, err);
	}
	if (size != old)
		leaf_resize(leaf, slot, size);
	if (data && size)
		memcpy(bytes_at(leaf, slot), data, size);
	return 0;
}

int edit_bytes(struct edit_tree *t, const struct btrkit_key *key, uint8_t **data, uint32_t *size,
	       struct btrkit_error *err)
{
	int ret = edit_find_item(t, key, err);

	if (ret)
		return edit_ended(t, ret, err);
	*data = bytes_at(t->c.nodes[0], t->c.slots[0]);
	*size = le32_get(leaf_items(t->c.nodes[0])[t->c.slots[0]].size);
	return 0;
}

/* Whether the item in the path's slot may have @key, considering the items before and after. */
static int check_rekey(struct edit_tree *t, const struct btrkit_key *from, const struct btrkit_key *key, bool *fits,
		       struct btrkit_error *err)
{
	const struct node *leaf = t->c.nodes[0];
	const uint32_t slot = t->c.slots[0];
	struct btrkit_key other;
	struct cursor c;
	int ret = 0;

	*fits = true;
	if (slot + 1 < leaf->nritems) {
		other = node_key(leaf, slot + 1);
		*fits = key_cmp(key, &other) < 0;
	} else if (edit_separator(t, &other)) {
		*fits = key_cmp(key, &other) < 0;
	}
	if (!*fits || key_cmp(key, from) >= 0)
		return 0;
	if (slot) {
		other = node_key(leaf, slot - 1);
		*fits = key_cmp(&other, key) < 0;
		return 0;
	}
	/* The item before is in another leaf. @key fits if this is the first item not less than it. */
	cursor_init(&c, t->overlay->fs, &t->c.root);
	ret = cursor_seek(&c, key, err);
	if (!ret)
		*fits = !key_cmp(&c.item.key, from);
	cursor_release(&c);
	return ret;
}

int edit_rekey(struct edit_tree *t, const struct btrkit_key *from, const struct btrkit_key *to,
	       struct btrkit_error *err)
{
	bool fits;
	int ret;

	ret = edit_find_item(t, from, err);
	if (!ret)
		ret = check_rekey(t, from, to, &fits, err);
	if (ret)
		return edit_ended(t, ret, err);
	if (!fits) {
		ret = err_set(err, BTRKIT_INVALID, "the new key of an item is out of order");
		err_at_tree(err, t->c.root.id);
		err_at_key(err, to);
		return ret;
	}
	items_of(t->c.nodes[0])[t->c.slots[0]].key = key_put(to);
	if (!t->c.slots[0])
		edit_fix_first_key(t, 0);
	return 0;
}
