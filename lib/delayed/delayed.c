// SPDX-License-Identifier: LGPL-2.1-or-later
/* Delayed items as operations change them: the trees, and the changes. */
#include "lib/delayed/impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/txn.h"
#include "lib/format/items/files/file_extent.h"

/* Maximum memory used by delayed items. */
#define WAITING_MAX (64u << 20)
/* Fraction of that which a shard collects before adding it to the total. */
#define COUNTED_PART 1024u

int delayed_create(struct btrkit_txn *txn, const struct delayed_watch *watch, struct delayed **ret,
		   struct btrkit_error *err)
{
	struct delayed *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(err);
	d->txn = txn;
	d->watch = *watch;
	d->waiting_max = WAITING_MAX;
	*ret = d;
	return 0;
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
	t->blocks = item.bytes_used / txn->fs->geometry.nodesize;
	t->read_only = item.flags & ROOT_SUBVOL_RDONLY;
	return 0;
}

int delayed_go_on(struct delayed *d, struct btrkit_error *err)
{
	int ret = 0;

	for (struct delayed_tree *t = d->list; !ret && t; t = t->next)
		if (!t->deleted)
			ret = find_edit_tree(t, t->id, err);
	return ret;
}

/* Requires the lock of trees. */
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
	/* There are none after a failed commit. */
	r = failure_check(d->txn->failure, err);
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
	for (unsigned i = 0; i < DELAYED_SHARDS; i++) {
		pthread_mutex_init(&t->shards[i].lock, NULL);
		t->shards[i].now = t->shards[i].running = delayed_table(d);
	}
	t->next = d->list;
	d->list = t;
	d->watch.tree_opened(d->watch.ctx);
	*ret = t;
	return 0;
}

int delayed_tree(struct delayed *d, uint64_t id, struct delayed_tree **ret, struct btrkit_error *err)
{
	struct delayed_tree *t;
	int r;

	/* Trees are never removed from the list, so it can be searched without the lock. */
	for (t = d->list; t && (t->id != id || t->deleted); t = t->next)
		;
	*ret = t;
	if (t)
		return 0;
	sync_lock_trees(&d->txn->sync);
	r = open_tree(d, id, ret, err);
	sync_unlock_trees(&d->txn->sync);
	return r;
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

/* Changes the reference of an item's old or new contents. */
static int change_ref(struct delayed_tree *t, const struct delayed_inode *in, const struct delayed_item *it, int add,
		      struct btrkit_error *err)
{
	const struct item item = { delayed_key(in, it), it->data, it->size };
	struct delayed *d = t->delayed;
	int ret;

	if (it->type != KEY_EXTENT_DATA)
		return 0;
	sync_lock_space(&d->txn->sync);
	ret = delayed_change_ref(d, t->id, &item, add, err);
	sync_unlock_space(&d->txn->sync);
	return ret;
}

static int check_size(const struct delayed_tree *t, uint32_t size, struct btrkit_error *err)
{
	if (size > leaf_room(t->delayed->txn->fs->geometry.nodesize) - sizeof(struct disk_item))
		return err_set(err, BTRKIT_INVALID, "item of %" PRIu32 " bytes is too large for a leaf", size);
	return 0;
}

/* Notes that items of an inode are about to change. What fails before that has no consequences. */
static void begin_change(struct delayed_tree *t, uint64_t inode)
{
	delayed_shard_of(t, inode)->changes++;
}

/* Passes on the result of a change that has begun. If it may be half done, the transaction has failed. */
static int end_change(struct delayed_tree *t, int ret, const struct btrkit_error *err)
{
	return failure_note_fatal(t->delayed->txn->failure, ret, err);
}

/* Counts memory by shard, and adds it to the total only now and then. */
static void count_bytes(struct delayed *d, struct delayed_shard *s, size_t bytes)
{
	s->bytes += bytes;
	s->uncounted += bytes;
	if (s->uncounted < d->waiting_max / COUNTED_PART)
		return;
	atomic_fetch_add_explicit(&d->waiting, s->uncounted, memory_order_relaxed);
	s->uncounted = 0;
}

/*
 * The items of a new inode are inserted in one place, one after the other. But its index items are batches of their
 * own, so its entries are counted separately.
 */
static void count_item(struct delayed_tree *t, struct delayed_inode *in, const struct delayed_item *it,
		       uint32_t size)
{
	const struct btrkit_key key = delayed_key(in, it);
	struct delayed_shard *s = delayed_shard_of(t, in->objectid);

	count_bytes(t->delayed, s, offsetof(struct delayed_item, data) + size + 3 * sizeof(void *));
	in->bytes += size + sizeof(struct disk_item);
	if (in->fresh && in->n > 1 && key.type != KEY_DIR_ITEM && key.type != KEY_DIR_INDEX)
		return;
	s->places++;
	s->leaves += it->change == DELAYED_NEW || delayed_count_leaf(t, &key);
}

int delayed_new_inode(struct delayed_tree *t, uint64_t inode, struct btrkit_error *err)
{
	struct delayed_inode *in;
	int ret = delayed_inode_get(&delayed_shard_of(t, inode)->now, inode, &in, err);

	if (ret)
		return ret;
	begin_change(t, inode);
	in->fresh = true;
	return 0;
}

static int put(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size, bool insert,
	       uint8_t **ret, struct btrkit_error *err)
{
	struct delayed_table *table = &delayed_shard_of(t, key->objectid)->now;
	struct delayed_inode *in;
	struct delayed_item *it, *added = NULL;
	bool there;
	int r;

	r = delayed_inode_get(table, key->objectid, &in, err);
	if (r)
		return r;
	it = delayed_inode_find(in, key);
	there = it && delayed_is_there(it);
	if (insert && there)
		return edit_there_already(t->id, key, err);
	if (!insert && it && !there)
		return edit_no_such_item(t->id, key, err);
	if (!it)
		r = delayed_item_add(table, in, key, size, &added, err);
	if (r)
		return r;
	begin_change(t, key->objectid);
	if (there) {
		r = change_ref(t, in, it, -1, err);
	} else if (it) {
		it->change = it->change == DELAYED_DELETED ? DELAYED_OVER : DELAYED_NEW;
	} else {
		it = added;
		it->change = insert ? DELAYED_NEW : DELAYED_OVER;
		count_item(t, in, it, size);
	}
	if (!r)
		r = delayed_item_set(table, in, &it, data, size, err);
	if (!r && data)
		r = change_ref(t, in, it, 1, err);
	if (!r && ret)
		*ret = it->data;
	return end_change(t, r, err);
}

int delayed_insert(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		   uint8_t **ret, struct btrkit_error *err)
{
	int r = check_size(t, size, err);

	return r ? r : put(t, key, data, size, true, ret, err);
}

int delayed_replace(struct delayed_tree *t, const struct btrkit_key *key, const void *data, uint32_t size,
		    struct btrkit_error *err)
{
	int r = check_size(t, size, err);

	return r ? r : put(t, key, data, size, false, NULL, err);
}

int delayed_delete(struct delayed_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct delayed_table *table = &delayed_shard_of(t, key->objectid)->now;
	struct delayed_inode *in;
	struct delayed_item *it;
	int ret;

	ret = delayed_inode_get(table, key->objectid, &in, err);
	if (ret)
		return ret;
	it = delayed_inode_find(in, key);
	if (!it) {
		ret = delayed_item_add(table, in, key, 0, &it, err);
		if (ret)
			return ret;
		begin_change(t, key->objectid);
		it->change = DELAYED_DELETED;
		count_item(t, in, it, 0);
		return 0;
	}
	if (!delayed_is_there(it))
		return edit_no_such_item(t->id, key, err);
	begin_change(t, key->objectid);
	it->change = it->change == DELAYED_NEW ? DELAYED_NONE : DELAYED_DELETED;
	return end_change(t, change_ref(t, in, it, -1, err), err);
}
