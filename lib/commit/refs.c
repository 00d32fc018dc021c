// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects changes of references, by extent, until they are applied. */
#include "lib/commit/refs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/commit/refs_head.h"
#include "lib/commit/txn.h"
#include "lib/format/feature_bits.h"

int refs_create(struct btrkit_txn *txn, struct refs **ret, struct btrkit_error *err)
{
	struct refs *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err);
	r->txn = txn;
	r->no_files = txn->simple_quota;
	*ret = r;
	return 0;
}

struct ref_head *ref_head_free(struct ref_head *h)
{
	if (h) {
		free(h->changes);
		free(h);
	}
	return NULL;
}

struct refs *refs_destroy(struct refs *r)
{
	struct ref_head *h, *next;

	if (!r)
		return NULL;
	HASH_ITER(hh, r->heads, h, next)
	{
		HASH_DEL(r->heads, h);
		ref_head_free(h);
	}
	free(r);
	return NULL;
}

size_t refs_pending(const struct refs *r)
{
	return r->pending;
}

size_t refs_pending_data(const struct refs *r)
{
	return r->pending_data;
}

size_t refs_unused_data(const struct refs *r)
{
	return r->unused_data;
}

size_t refs_queued(const struct refs *r)
{
	return r->queued;
}

bool refs_changed_files(const struct refs *r)
{
	return r->changed_files;
}

static struct ref_head *find(const struct refs *r, uint64_t bytenr)
{
	struct ref_head *h;

	HASH_FIND(hh, r->heads, &bytenr, sizeof(bytenr), h);
	return h;
}

static int add_head(struct refs *r, const struct range *extent, bool data, unsigned level, struct ref_head **ret,
		    struct btrkit_error *err)
{
	struct ref_head *h = calloc(1, sizeof(*h));

	if (!h)
		return err_nomem(err);
	h->extent = *extent;
	h->data = data;
	h->level = (uint8_t)level;
	HASH_ADD(hh, r->heads, extent.start, sizeof(h->extent.start), h);
	if (!h->hh.tbl) {
		free(h);
		return err_nomem(err);
	}
	*ret = h;
	return 0;
}

/* Gets or creates the head of an extent. An existing one must describe the same extent. */
static int get_head(struct refs *r, const struct range *extent, bool data, unsigned level, struct ref_head **ret,
		    struct btrkit_error *err)
{
	struct ref_head *h = find(r, extent->start);

	if (!h)
		return add_head(r, extent, data, level, ret, err);
	if (h->data != data || h->extent.length != extent->length || h->level != level) {
		err_corrupt(err, NULL,
			    "conflicting uses of extent %" PRIu64 ": %s of %" PRIu64 " bytes, level %u, and %s of %"
			    PRIu64 " bytes, level %u",
			    extent->start, h->data ? "data" : "a tree block", h->extent.length, h->level,
			    data ? "data" : "a tree block", extent->length, level);
		err_at_tree(err, OID_EXTENT_TREE);
		return -EUCLEAN;
	}
	*ret = h;
	return 0;
}

static void mark_changed(struct refs *r, struct ref_head *h)
{
	if (!h->changed) {
		r->pending++;
		r->pending_data += h->data;
		r->unused_data -= h->data && h->fresh;
	}
	h->changed = true;
}

int refs_new_extent(struct refs *r, const struct range *extent, bool data, unsigned level,
		    const struct btrkit_key *first, struct btrkit_error *err)
{
	struct ref_head *h;
	int ret;

	if (find(r, extent->start)) {
		err_corrupt(err, NULL, "extent %" PRIu64 " was allocated, but is in use", extent->start);
		err_at_tree(err, OID_EXTENT_TREE);
		return -EUCLEAN;
	}
	ret = add_head(r, extent, data, level, &h, err);
	if (ret)
		return ret;
	h->fresh = true;
	r->unused_data += data;
	if (first)
		h->first = *first;
	return 0;
}

static int compare_refs(const struct extent_ref *a, const struct extent_ref *b)
{
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->root != b->root)
		return a->root < b->root ? -1 : 1;
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return 0;
}

bool ref_equal(const struct extent_ref *a, const struct extent_ref *b)
{
	return !compare_refs(a, b);
}

static int by_ref(const void *a, const void *b)
{
	const struct ref_change *x = a, *y = b;

	return compare_refs(&x->ref, &y->ref);
}

void ref_head_net(struct refs *r, struct ref_head *h)
{
	uint32_t kept = 0;

	r->queued -= h->n;
	if (h->n > 1)
		qsort(h->changes, h->n, sizeof(*h->changes), by_ref);
	for (uint32_t i = 0; i < h->n; i++) {
		if (kept && !compare_refs(&h->changes[kept - 1].ref, &h->changes[i].ref)) {
			h->changes[kept - 1].net += h->changes[i].net;
			r->txn->writer->stats.refs_netted++;
		} else {
			h->changes[kept++] = h->changes[i];
		}
		if (h->changes[kept - 1].net)
			continue;
		if (i + 1 == h->n || compare_refs(&h->changes[kept - 1].ref, &h->changes[i + 1].ref)) {
			r->txn->writer->stats.refs_netted++;
			kept--;
		}
	}
	h->n = kept;
	r->queued += kept;
}

/* Whether the reference is from a file or a file tree, which quotas account for. */
static bool is_of_files(const struct extent_ref *ref)
{
	switch (ref->type) {
	case KEY_TREE_BLOCK_REF:
	case KEY_EXTENT_DATA_REF:
		return oid_is_file_tree(ref->root);
	default:
		return true;
	}
}

static int append(struct refs *r, struct ref_head *h, const struct extent_change *change, struct btrkit_error *err)
{
	struct ref_change *more;
	uint32_t size;

	if (h->n == h->size) {
		/* Some may cancel out. They are sorted only each time that their number has doubled. */
		ref_head_net(r, h);
		if (2 * h->n >= h->size) {
			size = h->size ? 2 * h->size : 1;
			more = reallocarray(h->changes, size, sizeof(*more));
			if (!more)
				return err_nomem(err);
			h->changes = more;
			h->size = size;
		}
	}
	h->changes[h->n] = (struct ref_change){ change->ref, change->add };
	h->changes[h->n++].ref.count = 1;
	r->queued++;
	h->total += change->add;
	return 0;
}

int refs_change(struct refs *r, const struct extent_change *change, struct btrkit_error *err)
{
	const struct range extent = { change->bytenr, change->num_bytes };
	struct ref_head *h;
	int ret;

	if (!change->add)
		return 0;
	if (is_of_files(&change->ref)) {
		if (r->no_files)
			return err_set(err, BTRKIT_UNSUPPORTED,
				       "writing is not supported: changes of files while simple quotas are on");
		r->changed_files = true;
	}
	ret = get_head(r, &extent, change->data, change->level, &h, err);
	if (!ret)
		ret = append(r, h, change, err);
	if (ret)
		return ret;
	h->last |= change->last;
	mark_changed(r, h);
	r->txn->writer->stats.refs_queued++;
	return 0;
}

int refs_set_full_backref(struct refs *r, uint64_t bytenr, unsigned level, struct btrkit_error *err)
{
	const struct range extent = { bytenr, r->txn->fs->geometry.nodesize };
	struct ref_head *h;
	int ret = get_head(r, &extent, false, level, &h, err);

	if (ret)
		return ret;
	h->full_backref = true;
	mark_changed(r, h);
	return 0;
}

int refs_find_item(struct edit_tree *t, const struct range *extent, bool data, unsigned level, struct extent_item *ret,
		   struct btrkit_error *err)
{
	struct cursor *c = &t->c;
	int r;

	/* Tree blocks have one of two types of items. Old filesystems may have both. */
	r = cursor_seek(c, &KEY(extent->start, KEY_EXTENT_ITEM, 0), err);
	if (r)
		return r;
	if (c->item.key.objectid != extent->start || c->item.key.type > KEY_METADATA_ITEM)
		return 1;
	r = cursor_blame(c, extent_item_decode(&c->fs->items, &c->item, ret, err), err);
	if (r)
		return r;
	if (ret->num_bytes != extent->length || !(ret->flags & EXTENT_FLAG_DATA) != !data ||
	    (!data && ret->level != level))
		r = err_corrupt(err, NULL, "extent item of %s, referred to as %s of %" PRIu64 " bytes, level %u",
				ret->flags & EXTENT_FLAG_DATA ? "data" : "a tree block", data ? "data" : "a tree block",
				extent->length, level);
	return cursor_blame(c, r, err);
}

int refs_lookup(struct refs *r, uint64_t bytenr, unsigned level, uint64_t *count, uint64_t *flags,
		struct btrkit_error *err)
{
	const struct range extent = { bytenr, r->txn->fs->geometry.nodesize };
	const struct ref_head *h = find(r, bytenr);
	struct extent_item item = { .flags = EXTENT_FLAG_TREE_BLOCK };
	struct edit_tree *t;
	int ret = 0;

	if (!h || !h->fresh) {
		ret = overlay_tree(r->txn->overlay, OID_EXTENT_TREE, &t, err);
		if (!ret)
			ret = refs_find_item(t, &extent, false, level, &item, err);
		if (ret == 1)
			ret = err_corrupt(err, NULL, "tree block %" PRIu64 " has no extent item", bytenr);
	}
	if (!ret && h && h->total < 0 && (uint64_t)-h->total > item.refs)
		ret = err_corrupt(err, "refs", "tree block %" PRIu64 " has fewer references than were dropped", bytenr);
	if (ret) {
		err_at_tree(err, OID_EXTENT_TREE);
		return ret;
	}
	*count = item.refs + (h ? (uint64_t)h->total : 0);
	*flags = item.flags | (h && h->full_backref ? EXTENT_FLAG_FULL_BACKREF : 0);
	return 0;
}

int refs_is_only(struct refs *r, const struct range *extent, const struct extent_ref *ref, uint64_t last_snapshot,
		 bool *fresh, struct btrkit_error *err)
{
	struct ref_head *h = find(r, extent->start);
	struct extent_ref there;
	struct extent_item item;
	struct edit_tree *t;
	int ret;

	*fresh = h && h->fresh;
	if (h) {
		ret = get_head(r, extent, true, 0, &h, err);
		if (ret)
			return ret;
		ref_head_net(r, h);
	}
	for (uint32_t i = 0; h && i < h->n; i++) {
		if (!ref_equal(&h->changes[i].ref, ref))
			return 1;
	}
	if (*fresh)
		return r->txn->generation <= last_snapshot;
	ret = overlay_tree(r->txn->overlay, OID_EXTENT_TREE, &t, err);
	if (!ret)
		ret = refs_find_item(t, extent, true, 0, &item, err);
	if (ret || item.generation <= last_snapshot)
		return ret < 0 ? ret : 1;
	ret = extent_item_next_ref(&item, &there, err);
	if (ret)
		return ret;
	return !ref_equal(&there, ref) || there.count != item.refs;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void count_batch(struct btrkit_write_stats *stats, size_t n)
{
	unsigned log2 = 0;

	while (log2 + 1 < sizeof(stats->ref_batch_log2) / sizeof(stats->ref_batch_log2[0]) && n >> (log2 + 1))
		log2++;
	stats->ref_batches++;
	stats->ref_batch_log2[log2]++;
}

/*
 * Each head is removed before it is applied: if that changes the same extent, the change belongs to the next batch.
 * Changes of extents that come later in this batch are included there.
 */
static int run_all(struct refs *r, const struct range *order, size_t n, struct refs_batch *b, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		struct ref_head *h = find(r, order[i].start);

		HASH_DEL(r->heads, h);
		r->pending--;
		r->pending_data -= h->data;
		ref_head_net(r, h);
		r->queued -= h->n;
		ret = refs_batch_apply(b, h, err);
		ref_head_free(h);
	}
	return ret ? ret : refs_batch_end(b, err);
}

int refs_run(struct refs *r, struct btrkit_error *err)
{
	struct range *order;
	struct refs_batch *b = NULL;
	struct ref_head *h, *next;
	size_t n = 0;
	int ret;

	if (!r->pending)
		return 0;
	order = reallocarray(NULL, r->pending, sizeof(*order));
	if (!order)
		return err_nomem(err);
	HASH_ITER(hh, r->heads, h, next)
	{
		if (h->changed)
			order[n++] = h->extent;
	}
	qsort(order, n, sizeof(*order), by_start);
	count_batch(&r->txn->writer->stats, n);
	ret = refs_batch_create(r, &b, err);
	if (!ret)
		ret = run_all(r, order, n, b, err);
	refs_batch_destroy(b);
	free(order);
	return ret;
}

int refs_release_unused(struct refs *r, struct btrkit_error *err)
{
	struct ref_head *h, *next;
	int ret = 0;

	HASH_ITER(hh, r->heads, h, next)
	{
		if (h->changed || ret)
			continue;
		ret = space_unalloc(r->txn->space, &h->extent, err);
		r->unused_data -= h->data && h->fresh;
		HASH_DEL(r->heads, h);
		ref_head_free(h);
	}
	return ret;
}
