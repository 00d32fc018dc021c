// SPDX-License-Identifier: LGPL-2.1-or-later
/* Applies changes of references to the extent tree. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/csums.h"
#include "lib/commit/refs_head.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"
#include "lib/space/space.h"

#define INSERTS_MAX 512u

struct refs_batch {
	struct refs *r;
	struct edit_tree *t; /* the extent tree */
	uint8_t *scratch;    /* buffer of nodesize bytes for the item that is being changed */
	/* New items, deferred so that many are inserted into a leaf at once. */
	struct item inserts[INSERTS_MAX];
	size_t num_inserts;
	uint8_t *insert_bytes;
	uint32_t insert_used, insert_size;
	struct range fresh; /* extents of these items, as long as they are contiguous */
	struct range dead;  /* data that was freed, whose checksums must be deleted */
};

int refs_batch_create(struct refs *r, struct refs_batch **ret, struct btrkit_error *err)
{
	const uint32_t nodesize = r->txn->fs->geometry.nodesize;
	struct refs_batch *b = calloc(1, sizeof(*b));
	int res;

	if (!b)
		return err_nomem(err);
	b->r = r;
	b->insert_size = 2 * nodesize;
	b->scratch = malloc(nodesize);
	b->insert_bytes = malloc(b->insert_size);
	res = b->scratch && b->insert_bytes ? overlay_tree(r->txn->overlay, OID_EXTENT_TREE, &b->t, err) :
					      err_nomem(err);
	if (res)
		refs_batch_destroy(b);
	else
		*ret = b;
	return res;
}

struct refs_batch *refs_batch_destroy(struct refs_batch *b)
{
	if (b) {
		free(b->scratch);
		free(b->insert_bytes);
		free(b);
	}
	return NULL;
}

static int flush_fresh(struct refs_batch *b, struct btrkit_error *err)
{
	int ret = b->fresh.length ? space_check_unused(&b->t->c, &b->fresh, err) : 0;

	b->fresh.length = 0;
	return ret;
}

static int flush_inserts(struct refs_batch *b, struct btrkit_error *err)
{
	int ret = flush_fresh(b, err);

	if (!ret)
		ret = edit_insert_many(b->t, b->inserts, b->num_inserts, err);
	b->num_inserts = 0;
	b->insert_used = 0;
	return ret;
}

static int put_off_insert(struct refs_batch *b, const struct btrkit_key *key, const struct extent_bytes *x,
			  const struct range *extent, struct btrkit_error *err)
{
	uint8_t *to;
	int ret = 0;

	if (b->num_inserts == INSERTS_MAX || x->size > b->insert_size - b->insert_used)
		ret = flush_inserts(b, err);
	else if (range_end(&b->fresh) != extent->start)
		ret = flush_fresh(b, err);
	if (ret)
		return ret;
	if (!b->fresh.length)
		b->fresh.start = extent->start;
	b->fresh.length += extent->length;
	to = b->insert_bytes + b->insert_used;
	memcpy(to, x->bytes, x->size);
	b->inserts[b->num_inserts++] = (struct item){ *key, to, x->size };
	b->insert_used += x->size;
	return 0;
}

static int forget_csums(struct refs_batch *b, const struct range *extent, struct btrkit_error *err)
{
	int ret = 0;

	if (b->dead.length && range_end(&b->dead) == extent->start) {
		b->dead.length += extent->length;
		return 0;
	}
	if (b->dead.length)
		ret = csums_trim(b->r->txn, &b->dead, err);
	b->dead = *extent;
	return ret;
}

int refs_batch_end(struct refs_batch *b, struct btrkit_error *err)
{
	int ret = flush_inserts(b, err);

	if (!ret && b->dead.length)
		ret = csums_trim(b->r->txn, &b->dead, err);
	b->dead.length = 0;
	return ret;
}

/* Linux's limit. A reference that would make the item as large is keyed. */
static uint32_t item_limit(const struct refs_batch *b)
{
	return (leaf_room(b->r->txn->fs->geometry.nodesize) >> 4) - (uint32_t)sizeof(struct disk_item);
}

/* Changes one reference, inline or keyed. @key: key of the extent item, which does not exist yet if @fresh */
static int apply_change(struct refs_batch *b, struct extent_bytes *x, const struct btrkit_key *key, bool fresh,
			const struct ref_change *change, struct btrkit_error *err)
{
	struct inline_place place;
	bool keyed = x->keyed;
	uint32_t count;
	int ret;

	ret = inline_ref_find(x, &change->ref, &place, err);
	if (ret)
		return ret;
	if (!place.len && !fresh && change->net > 0 && !keyed)
		ret = keyed_refs_exist(b->t, key, &keyed, err);
	if (ret)
		return ret;
	if (!place.len &&
	    (keyed || change->net < 0 || x->size + extent_inline_ref_size(change->ref.type) >= item_limit(b))) {
		ret = keyed_ref_change(b->t, x->bytenr, change, err);
		x->keyed = true;
	} else {
		ret = ref_count_changed(change, place.count, &count, err);
		if (!ret)
			inline_ref_set(x, &place, &change->ref, count);
	}
	if (ret)
		return ret;
	if (change->net < 0 ? -change->net > (int64_t)x->refs : change->net > INT64_MAX - (int64_t)x->refs)
		return err_corrupt(err, "refs", "extent with %" PRIu64 " references cannot get %" PRId64 " more",
				   x->refs, change->net);
	x->refs += (uint64_t)change->net;
	return 0;
}

/* Adds references before dropping others, so that the count does not become 0 in between. */
static int apply_changes(struct refs_batch *b, struct extent_bytes *x, const struct btrkit_key *key,
			 const struct ref_head *h, struct btrkit_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < h->n; i++)
		if (h->changes[i].net > 0)
			ret = apply_change(b, x, key, h->fresh, &h->changes[i], err);
	for (uint32_t i = 0; !ret && i < h->n; i++)
		if (h->changes[i].net < 0)
			ret = apply_change(b, x, key, h->fresh, &h->changes[i], err);
	return ret;
}

static int insert_extent(struct refs_batch *b, const struct ref_head *h, struct btrkit_error *err)
{
	const struct btrkit_txn *txn = b->r->txn;
	const bool skinny = !h->data && txn->fs->super.incompat & INCOMPAT_SKINNY_METADATA;
	const struct btrkit_key key = KEY(h->extent.start, skinny ? KEY_METADATA_ITEM : KEY_EXTENT_ITEM,
					  skinny ? h->level : h->extent.length);
	const struct disk_tree_block_info info = { key_put(&h->first), h->level };
	struct extent_bytes x = { .bytenr = h->extent.start, .bytes = b->scratch };
	struct disk_extent_item d = { .generation = le64_put(txn->generation) };
	int ret;

	d.flags = le64_put((h->data ? EXTENT_FLAG_DATA : EXTENT_FLAG_TREE_BLOCK) |
			   (h->full_backref ? EXTENT_FLAG_FULL_BACKREF : 0));
	x.size = x.refs_at = (uint32_t)(sizeof(d) + (h->data || skinny ? 0 : sizeof(info)));
	memcpy(x.bytes + sizeof(d), &info, x.size - sizeof(d));
	ret = apply_changes(b, &x, &key, h, err);
	if (ret)
		return ret;
	d.refs = le64_put(x.refs);
	memcpy(x.bytes, &d, sizeof(d));
	ret = put_off_insert(b, &key, &x, &h->extent, err);
	return ret ? ret : space_enter(b->r->txn->space, &h->extent, err);
}

/* The last reference is gone: nothing may remain that belongs to the extent. */
static int remove_extent(struct refs_batch *b, const struct ref_head *h, const struct extent_bytes *x,
			 const struct btrkit_key *key, struct btrkit_error *err)
{
	struct extent_item left = { .pos = x->bytes + x->refs_at, .end = x->bytes + x->size };
	struct extent_ref ref;
	bool keyed = false;
	int ret;

	/* With simple quotas, items record who made the extent. That is not a reference. */
	while (!(ret = extent_item_next_ref(&left, &ref, err)) && ref.type == KEY_EXTENT_OWNER_REF)
		;
	if (ret >= 0) {
		keyed = !ret;
		ret = 0;
	}
	if (!ret && !keyed)
		ret = keyed_refs_exist(b->t, key, &keyed, err);
	if (!ret && keyed)
		ret = err_corrupt(err, "refs", "extent has reference count 0, but still has references");
	if (!ret)
		ret = edit_delete(b->t, key, err);
	if (!ret && h->data)
		ret = forget_csums(b, &h->extent, err);
	return ret ? ret : space_leave(b->r->txn->space, &h->extent, err);
}

static int write_back(struct refs_batch *b, const struct extent_bytes *x, const struct btrkit_key *key, bool full,
		      uint32_t old_size, struct btrkit_error *err)
{
	struct disk_extent_item d;
	uint32_t size;
	uint8_t *to;
	int ret;

	memcpy(&d, x->bytes, sizeof(d));
	d.refs = le64_put(x->refs);
	if (full)
		d.flags = le64_put(le64_get(d.flags) | EXTENT_FLAG_FULL_BACKREF);
	memcpy(x->bytes, &d, sizeof(d));
	if (x->size != old_size)
		return edit_replace(b->t, key, x->bytes, x->size, err);
	ret = edit_bytes(b->t, key, &to, &size, err);
	if (!ret)
		memcpy(to, x->bytes, x->size);
	return ret;
}

static int change_extent(struct refs_batch *b, const struct ref_head *h, struct btrkit_error *err)
{
	struct cursor *c = &b->t->c;
	struct extent_bytes x = { .bytenr = h->extent.start, .bytes = b->scratch };
	struct extent_item item;
	struct btrkit_key key;
	uint32_t old_size;
	int ret;

	if (!h->n && !h->full_backref)
		return 0;
	ret = refs_find_item(b->t, &h->extent, h->data, h->level, &item, err);
	if (ret == 1)
		return err_corrupt(err, NULL, "%s of %" PRIu64 " bytes has no extent item",
				   h->data ? "data extent" : "tree block", h->extent.length);
	if (ret)
		return ret;
	key = c->item.key;
	x.refs = item.refs;
	x.size = old_size = c->item.size;
	x.refs_at = (uint32_t)(item.pos - c->item.data);
	if (x.refs > INT64_MAX)
		return err_corrupt(err, "refs", "invalid reference count %" PRIu64, x.refs);
	memcpy(x.bytes, c->item.data, x.size);
	ret = apply_changes(b, &x, &key, h, err);
	/*
	 * Its copy has taken over its references. If the block was still in use, what it refers to would lack a
	 * reference.
	 */
	if (!ret && h->last && x.refs)
		ret = err_corrupt(err, "refs",
				  "tree block has %" PRIu64 " more references, but is not shared by its generation",
				  x.refs);
	if (ret)
		return ret;
	return x.refs ? write_back(b, &x, &key, h->full_backref, old_size, err) : remove_extent(b, h, &x, &key, err);
}

/* The extent was allocated and freed within the transaction, and never entered into the extent tree. */
static int unalloc(struct refs_batch *b, const struct ref_head *h, struct btrkit_error *err)
{
	int ret = h->data ? forget_csums(b, &h->extent, err) : 0;

	return ret ? ret : space_unalloc(b->r->txn->space, &h->extent, err);
}

int refs_batch_apply(struct refs_batch *b, struct ref_head *h, struct btrkit_error *err)
{
	int ret;

	if (!h->fresh)
		ret = change_extent(b, h, err);
	else if (h->n)
		ret = insert_extent(b, h, err);
	else
		ret = unalloc(b, h, err);
	if (ret) {
		err_at_tree(err, OID_EXTENT_TREE);
		err_at_key(err, &KEY(h->extent.start, h->data ? KEY_EXTENT_ITEM : KEY_METADATA_ITEM,
				     h->data ? h->extent.length : h->level));
		return ret;
	}
	b->r->txn->writer->stats.refs_applied += h->n || h->full_backref;
	return 0;
}
