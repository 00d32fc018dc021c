// SPDX-License-Identifier: LGPL-2.1-or-later
/* References in the extent tree: inline in the extent item, or keyed, as items of their own. */
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/refs_head.h"

/* If keyed data references have the same hash, each takes the next free offset. */
#define COLLISIONS_MAX 65536u

int ref_count_changed(const struct ref_change *change, uint32_t before, uint32_t *after, struct btrkit_error *err)
{
	const bool data = change->ref.type == KEY_EXTENT_DATA_REF || change->ref.type == KEY_SHARED_DATA_REF;
	const int64_t count = (int64_t)before + change->net;

	if (count < 0)
		return err_corrupt(err, "count",
				   before ? "reference of type %u is dropped more often than its count" :
					    "reference of type %u to be dropped does not exist",
				   change->ref.type);
	if (count > (data ? UINT32_MAX : 1))
		return err_corrupt(err, "count", "count of a reference of type %u is too large",
				   change->ref.type);
	*after = (uint32_t)count;
	return 0;
}

int inline_ref_find(const struct extent_bytes *x, const struct extent_ref *ref, struct inline_place *ret,
		    struct btrkit_error *err)
{
	const uint64_t sequence = extent_ref_sequence(ref);
	struct extent_item item = { .pos = x->bytes + x->refs_at, .end = x->bytes + x->size };
	struct extent_ref there;

	for (;;) {
		const uint8_t *at = item.pos;
		int r = extent_item_next_ref(&item, &there, err);

		if (r < 0)
			return r;
		*ret = (struct inline_place){ (uint32_t)(at - x->bytes), 0, 0 };
		/*
		 * References of one type are in descending order. Equal ones remain in the order in which they were
		 * added.
		 */
		if (r || there.type > ref->type ||
		    (there.type == ref->type && !ref_equal(&there, ref) && extent_ref_sequence(&there) < sequence))
			return 0;
		if (ref_equal(&there, ref)) {
			ret->len = (uint32_t)(item.pos - at);
			ret->count = there.count;
			return 0;
		}
	}
}

void inline_ref_set(struct extent_bytes *x, const struct inline_place *place, const struct extent_ref *ref,
		    uint32_t count)
{
	const uint32_t len = count ? (uint32_t)extent_inline_ref_size(ref->type) : 0;
	struct extent_ref put = *ref;

	memmove(x->bytes + place->at + len, x->bytes + place->at + place->len, x->size - place->at - place->len);
	x->size += len - place->len;
	put.count = count;
	if (len)
		extent_inline_ref_put(&put, x->bytes + place->at);
}

/* Finds the item of a keyed reference. @return 0: *key is its key; 1: none, *key is the key for a new one; <0 */
static int keyed_ref_find(struct edit_tree *t, uint64_t bytenr, const struct extent_ref *ref, struct btrkit_key *key,
			  uint32_t *count, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	uint64_t free_at;
	int ret;

	*key = KEY(bytenr, ref->type, extent_ref_sequence(ref));
	free_at = key->offset;
	for (ret = cursor_seek(c, key, err); !ret; ret = cursor_next(c, err)) {
		struct extent_ref there;

		if (c->item.key.objectid != bytenr || c->item.key.type != ref->type ||
		    c->item.key.offset - key->offset > COLLISIONS_MAX)
			break;
		ret = cursor_blame(c, extent_keyed_ref_decode(&c->item, &there, err), err);
		if (ret)
			return ret;
		if (ref_equal(&there, ref)) {
			*key = c->item.key;
			*count = there.count;
			return 0;
		}
		if (c->item.key.offset == free_at)
			free_at++;
		if (ref->type != KEY_EXTENT_DATA_REF)
			break;
	}
	if (ret < 0)
		return ret;
	key->offset = free_at;
	*count = 0;
	return 1;
}

/* Encodes the contents of a keyed reference's item. @return their size */
static uint32_t keyed_ref_bytes(const struct extent_ref *ref, uint32_t count, uint8_t *to)
{
	const le32 disk_count = le32_put(count);
	struct disk_extent_data_ref data;
	struct extent_ref put = *ref;

	put.count = count;
	switch (ref->type) {
	case KEY_EXTENT_DATA_REF:
		data = extent_data_ref_put(&put);
		memcpy(to, &data, sizeof(data));
		return sizeof(data);
	case KEY_SHARED_DATA_REF:
		memcpy(to, &disk_count, sizeof(disk_count));
		return sizeof(disk_count);
	default:
		return 0;
	}
}

int keyed_ref_change(struct edit_tree *t, uint64_t bytenr, const struct ref_change *change, struct btrkit_error *err)
{
	uint8_t bytes[sizeof(struct disk_extent_data_ref)];
	uint32_t before = 0, after, size;
	struct btrkit_key key;
	int ret;

	ret = keyed_ref_find(t, bytenr, &change->ref, &key, &before, err);
	if (ret < 0)
		return ret;
	ret = ref_count_changed(change, before, &after, err);
	if (ret)
		return ret;
	if (!after)
		return edit_delete(t, &key, err);
	size = keyed_ref_bytes(&change->ref, after, bytes);
	return before ? edit_replace(t, &key, bytes, size, err) : edit_insert(t, &key, bytes, size, err);
}

int keyed_refs_exist(struct edit_tree *t, const struct btrkit_key *key, bool *ret, struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	int r = cursor_seek(c, key, err);

	if (!r && !key_cmp(&c->item.key, key))
		r = cursor_next(c, err);
	if (r < 0)
		return r;
	*ret = !r && c->item.key.objectid == key->objectid && c->item.key.type < KEY_BLOCK_GROUP_ITEM;
	return 0;
}
