// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads items including delayed changes: the latest ones, else those being run, else from the tree. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/delayed/impl.h"

#define FIRST_INDEX 2u /* 0 and 1 would be "." and ".." */

void delayed_reader_release(struct delayed_reader *r)
{
	free(r->buf);
	*r = (struct delayed_reader){ 0 };
}

/* Copies the cursor's item, since others may change the tree. @r: NULL for its key only */
static int copy_item(struct delayed_reader *r, const struct item *from, struct item *ret, struct btrkit_error *err)
{
	if (!r) {
		*ret = (struct item){ .key = from->key };
		return 0;
	}
	if (from->size > r->size) {
		uint8_t *buf = realloc(r->buf, from->size);

		if (!buf)
			return err_nomem(err);
		r->buf = buf;
		r->size = from->size;
	}
	if (from->size)
		memcpy(r->buf, from->data, from->size);
	*ret = (struct item){ from->key, r->buf, from->size };
	return 0;
}

enum tree_seek { TREE_EXACT, TREE_FORWARD, TREE_BACK };

/* Finds an item of the key's inode in the tree. @return 0; 1: there is none; <0 */
static int tree_item(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key,
		     enum tree_seek seek, struct item *ret, struct btrkit_error *err)
{
	struct delayed *d = t->delayed;
	struct cursor c;
	int res;

	sync_rdlock_trees(&d->txn->sync);
	cursor_init(&c, t->edit->c.fs, &t->edit->c.root);
	if (seek == TREE_EXACT)
		res = cursor_find(&c, key, err);
	else
		res = seek == TREE_BACK ? cursor_seek_back(&c, key, err) : cursor_seek(&c, key, err);
	if (!res && c.item.key.objectid != key->objectid)
		res = 1;
	if (!res)
		delayed_see_leaf(t, &c.item.key, &c);
	if (!res)
		res = copy_item(r, &c.item, ret, err);
	cursor_release(&c);
	sync_rdunlock_trees(&d->txn->sync);
	return res;
}

static struct item item_of(const struct delayed_inode *in, const struct delayed_item *it)
{
	return (struct item){ delayed_key(in, it), it->data, it->size };
}

int delayed_find(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err)
{
	const struct delayed_shard *s = delayed_shard_of(t, key->objectid);
	const struct delayed_table *tables[] = { &s->now, &s->running };

	for (unsigned i = 0; i < 2; i++) {
		const struct delayed_inode *in = delayed_table_find(tables[i], key->objectid);
		const struct delayed_item *it = in ? delayed_inode_find(in, key) : NULL;

		if (it) {
			*ret = item_of(in, it);
			return !delayed_is_there(it);
		}
		if (in && in->fresh)
			return 1;
	}
	return tree_item(t, r, key, TREE_EXACT, ret, err);
}

/* The first delayed item not below the key, or with @back the last one not above it; NULL: none. */
static const struct delayed_item *nearest(struct delayed_inode *in, const struct btrkit_key *key, bool back)
{
	uint32_t low = 0, high;

	if (!in)
		return NULL;
	delayed_sort(in);
	high = in->n;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const int cmp = delayed_cmp(in->items[middle], key);

		if (cmp < 0 || (back && !cmp))
			low = middle + 1;
		else
			high = middle;
	}
	if (back)
		return low ? in->items[low - 1] : NULL;
	return low < in->n ? in->items[low] : NULL;
}

/* Goes to the next key, or the previous one. @return false: the inode has none */
static bool step(struct btrkit_key *key, bool back)
{
	if (back ? key->offset-- : ++key->offset)
		return true;
	return back ? key->type-- : ++key->type;
}

static int seek_either(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, bool back,
		       struct item *ret, struct btrkit_error *err)
{
	struct delayed_shard *s = delayed_shard_of(t, key->objectid);
	struct delayed_inode *now = delayed_table_find(&s->now, key->objectid);
	struct delayed_inode *running = delayed_table_find(&s->running, key->objectid);
	const bool fresh = (now && now->fresh) || (running && running->fresh);
	struct btrkit_key at = *key;

	do {
		const struct delayed_item *first = nearest(now, &at, back), *second = nearest(running, &at, back);
		struct delayed_inode *in = now;
		struct btrkit_key found;
		struct item item;
		int res = fresh ? 1 : tree_item(t, r, &at, back ? TREE_BACK : TREE_FORWARD, &item, err);

		if (res < 0)
			return res;
		if (first)
			found = delayed_key(now, first);
		/* Of equal keys, the one that was changed last takes precedence. */
		if (second && (!first || (back ? delayed_cmp(second, &found) > 0 : delayed_cmp(second, &found) < 0))) {
			first = second;
			in = running;
			found = delayed_key(running, second);
		}
		if (!first && res)
			return 1;
		if (!first ||
		    (!res && (back ? key_cmp(&item.key, &found) > 0 : key_cmp(&item.key, &found) < 0))) {
			*ret = item;
			return 0;
		}
		if (delayed_is_there(first)) {
			*ret = item_of(in, first);
			return 0;
		}
		at = found;
	} while (step(&at, back));
	return 1;
}

int delayed_seek(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		 struct btrkit_error *err)
{
	return seek_either(t, r, key, false, ret, err);
}

int delayed_seek_back(struct delayed_tree *t, struct delayed_reader *r, const struct btrkit_key *key, struct item *ret,
		      struct btrkit_error *err)
{
	return seek_either(t, r, key, true, ret, err);
}

int delayed_next_index(struct delayed_tree *t, struct delayed_reader *r, uint64_t dir, uint64_t *ret,
		       struct btrkit_error *err)
{
	struct delayed_inode *in;
	struct item item;
	int res;

	res = delayed_inode_get(&delayed_shard_of(t, dir)->now, dir, &in, err);
	if (res)
		return res;
	if (!in->next_index) {
		res = delayed_seek_back(t, r, &KEY(dir, KEY_DIR_INDEX, UINT64_MAX), &item, err);
		if (res < 0)
			return res;
		in->next_index = FIRST_INDEX;
		if (!res && item.key.type == KEY_DIR_INDEX && item.key.offset >= FIRST_INDEX)
			in->next_index = item.key.offset + 1;
	}
	if (!in->next_index)
		return err_corrupt(err, "key.offset", "directory has no unused index left");
	*ret = in->next_index++;
	return 0;
}

int delayed_notes(struct delayed_tree *t, uint64_t inode, uint8_t **ret, struct btrkit_error *err)
{
	struct delayed_inode *in;
	int res = delayed_inode_get(&delayed_shard_of(t, inode)->now, inode, &in, err);

	if (!res)
		*ret = &in->notes;
	return res;
}

/* Finds the highest inode number in the tree. */
static int last_inode(struct delayed_tree *t, uint64_t *ret, struct btrkit_error *err)
{
	struct cursor c;
	int res;

	sync_rdlock_trees(&t->delayed->txn->sync);
	cursor_init(&c, t->edit->c.fs, &t->edit->c.root);
	res = cursor_seek_back(&c, &KEY(OID_LAST_FREE, 255, UINT64_MAX), err);
	*ret = !res && c.item.key.objectid > OID_FIRST_FREE ? c.item.key.objectid : OID_FIRST_FREE;
	cursor_release(&c);
	sync_rdunlock_trees(&t->delayed->txn->sync);
	return res < 0 ? res : 0;
}

int delayed_take_inode(struct delayed_tree *t, uint64_t *ret, struct btrkit_error *err)
{
	uint64_t last, none = 0;
	int res;

	if (!atomic_load(&t->next_inode)) {
		res = last_inode(t, &last, err);
		if (res)
			return res;
		/* If another thread was faster, its result is right, and numbers may have been allocated since. */
		atomic_compare_exchange_strong(&t->next_inode, &none, last + 1);
	}
	*ret = atomic_fetch_add(&t->next_inode, 1);
	/* Linux does not use the last one either. */
	if (*ret >= OID_LAST_FREE)
		return err_set(err, BTRKIT_NO_SPACE, "subvolume %" PRIu64 " has no unused inode number left",
			       t->id);
	return 0;
}
