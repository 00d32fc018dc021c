// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Extents are looked up in the order of their addresses, so that leaves of the extent tree are visited one after the
 * other. A file that was written in another order would visit most of them for each of its leaves; so for such a file,
 * the extents of many leaves are collected first.
 */
#include "lib/backref/share_batch.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/backref/ancestors.h"
#include "lib/backref/share_path.h"
#include "lib/base/err.h"

void share_batch_release(struct share_batch *b)
{
	free(b->items);
	free(b->places);
	free(b->extents);
}

/* A ref_visit_fn. @return 1: the extent is shared, whatever else refers to it */
static int visit_data_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	(void)extent;
	return shared_add(ctx, ref);
}

static int read_refs(struct share_ctx *s, struct share_extent *e, struct btrkit_error *err)
{
	*e = (struct share_extent){ .bytenr = e->bytenr, .refs.inode = e->refs.inode };
	return extent_for_each_ref(&s->extents, e->bytenr, visit_data_ref, &e->refs, err);
}

/* The extent tree could not be read: note which part of it. */
static void note_lost(struct share_ctx *s, int ret)
{
	struct share_lost *lost = &s->lost;

	lost->ret = 0;
	if (ret == -ENOMEM || cursor_lost_keys(&s->extents, &lost->first, &lost->end))
		return;
	lost->ret = ret;
	lost->why = s->failure;
}

/* Whether the item of the extent at @bytenr is in the lost part. */
static bool is_lost(const struct share_lost *lost, uint64_t bytenr)
{
	/* The item of an extent whose references continue in the lost part is before it. */
	return lost->ret && key_cmp(&lost->first, &KEY(bytenr, KEY_METADATA_ITEM, UINT64_MAX)) <= 0 &&
	       bytenr < lost->end.objectid;
}

int share_load_refs(struct share_ctx *s, struct share_extent *e, struct btrkit_error *err)
{
	int ret;

	if (is_lost(&s->lost, e->bytenr)) {
		e->lost = true;
		return err_pass(err, &s->lost.why, s->lost.ret);
	}
	ret = read_refs(s, e, &s->failure);
	e->lost = ret < 0;
	if (ret >= 0)
		return 0;
	note_lost(s, ret);
	return err_pass(err, &s->failure, ret);
}

/* Makes room for @more items. */
static int make_room(struct share_batch *b, size_t more, struct btrkit_error *err)
{
	const size_t needed = b->num_items + more, size = needed > 2 * b->size ? needed : 2 * b->size;
	struct share_extent *extents;
	struct sort_entry *items;
	uint32_t *places;

	if (needed <= b->size)
		return 0;
	items = reallocarray(b->items, size, sizeof(*items));
	b->items = items ? items : b->items;
	places = reallocarray(b->places, size, sizeof(*places));
	b->places = places ? places : b->places;
	extents = reallocarray(b->extents, size, sizeof(*extents));
	b->extents = extents ? extents : b->extents;
	if (!items || !places || !extents)
		return err_nomem(err);
	b->size = size;
	return 0;
}

/* Whether @item refers to a data extent. Invalid items are reported when the listing reaches them. */
static bool refers(const struct share_ctx *s, const struct item *item, struct file_extent *fe)
{
	return item->key.type == KEY_EXTENT_DATA && !file_extent_decode(&s->fs->items, item, fe, NULL) &&
	       fe->disk_bytenr;
}

static void add_item(struct share_batch *b, uint64_t bytenr, uint64_t inode)
{
	const struct sort_entry *last = b->num_items ? &b->items[b->num_items - 1] : NULL;

	if (last && (last->rank > bytenr || (last->rank == bytenr && last->number > inode)))
		b->steps_back++;
	b->items[b->num_items] = (struct sort_entry){ bytenr, inode, (void *)(uintptr_t)b->num_items };
	b->num_items++;
}

/*
 * Adds the items of the leaf of @c from @slot on, with @inode only those of that inode. @return 0; 1: these end in this
 * leaf; <0
 */
static int add_leaf(struct share_ctx *s, const struct cursor *c, uint32_t slot, uint64_t inode,
		    struct btrkit_error *err)
{
	const struct node *leaf = cursor_leaf(c);
	struct share_batch *b = &s->batch;
	bool end = false;
	int ret;

	ret = make_room(b, leaf->nritems, err);
	if (ret)
		return ret;
	for (; slot < leaf->nritems && !end; slot++) {
		struct item item = leaf_item(leaf, slot);
		struct file_extent fe;

		end = inode && item.key.objectid != inode;
		if (!end && refers(s, &item, &fe))
			add_item(b, fe.disk_bytenr, item.key.objectid);
	}
	b->leaves[b->num_leaves].bytenr = leaf->bytenr;
	b->leaves[b->num_leaves++].items_end = b->num_items;
	return end;
}

/* Whether both cursors are in the same leaf, on the same path: in a damaged tree, a search may lead elsewhere. */
static bool same_path(const struct cursor *a, const struct cursor *b)
{
	for (unsigned level = 0; level <= a->root.level; level++)
		if (a->nodes[level]->bytenr != b->nodes[level]->bytenr)
			return false;
	return true;
}

/*
 * Adds leaves after that of @c up to one that is shared. What cannot be read is reported when the listing reaches it.
 */
static int look_ahead(struct share_ctx *s, const struct cursor *c, uint64_t inode, struct btrkit_error *err)
{
	struct share_batch *b = &s->batch;
	int ret;

	s->ahead.until = c->until;
	ret = cursor_descend(&s->ahead, &c->item.key, 0, NULL);
	if (!ret && !same_path(&s->ahead, c))
		return 0;
	while (!ret && b->num_leaves < SHARE_LEAVES && b->num_items < SHARE_ITEMS) {
		const size_t before = b->num_items;
		bool shared = false;
		int r = 0;

		ret = cursor_next_block(&s->ahead, 0, NULL);
		if (!ret)
			ret = add_leaf(s, &s->ahead, 0, inode, NULL);
		if (ret >= 0 && b->num_items > before)
			r = share_leaf(s, &s->ahead, &shared, NULL);
		if (r || shared) {
			b->num_items = before;
			b->num_leaves--;
			ret = r ? r : 1;
		}
	}
	return ret == -ENOMEM ? err_nomem(err) : 0;
}

/* Looks up the extents of all items. */
static int look_up(struct share_ctx *s, bool one_inode, struct btrkit_error *err)
{
	struct share_batch *b = &s->batch;
	bool failed = false;
	size_t n = 0;

	for (size_t i = 0; i < b->num_items; i++) {
		const struct sort_entry *item = &b->items[i];

		if (!n || b->extents[n - 1].bytenr != item->rank || b->extents[n - 1].refs.inode != item->number) {
			struct share_extent *e = &b->extents[n++];

			*e = (struct share_extent){ .bytenr = item->rank, .refs.inode = item->number, .lost = true };
			/*
			 * A failure is reported when the listing reaches that extent. If that is of one file, it ends
			 * there, so do not look for more failures.
			 */
			if (!(failed && one_inode) && share_load_refs(s, e, NULL) == -ENOMEM)
				return err_nomem(err);
			failed |= e->lost;
		}
		b->places[(uintptr_t)item->what] = (uint32_t)(n - 1);
	}
	s->counts.checked += n;
	s->counts.saved_by_batch += b->num_items - n;
	return 0;
}

/* Files are mostly written sequentially; then only few extents are not after the previous one. */
static bool in_disorder(const struct share_batch *b)
{
	return b->steps_back > b->num_items / 8;
}

int share_batch_load(struct share_ctx *s, const struct cursor *c, bool one_inode, struct btrkit_error *err)
{
	const uint64_t inode = one_inode ? c->item.key.objectid : 0;
	struct share_batch *b = &s->batch;
	int ret;

	b->num_items = b->steps_back = b->next = 0;
	b->num_leaves = b->leaf = 0;
	ret = add_leaf(s, c, c->slots[0], inode, err);
	/* A batch in disorder passes leaves of the extent tree that the next one needs again. */
	s->extents.once = one_inode && !in_disorder(b);
	if (!ret && in_disorder(b))
		ret = look_ahead(s, c, inode, err);
	if (b->steps_back)
		sort_entries(b->items, b->num_items);
	if (ret >= 0)
		ret = look_up(s, one_inode, err);
	if (ret < 0)
		b->num_leaves = 0;
	return ret;
}

bool share_batch_enter(struct share_batch *b, uint64_t bytenr)
{
	for (unsigned i = b->leaf + 1; i < b->num_leaves; i++) {
		if (b->leaves[i].bytenr == bytenr) {
			b->leaf = i;
			b->next = b->leaves[i - 1].items_end;
			return true;
		}
	}
	return false;
}

struct share_extent *share_batch_find(struct share_batch *b, uint64_t bytenr, uint64_t inode)
{
	const size_t from = b->leaf ? b->leaves[b->leaf - 1].items_end : 0;
	size_t items, at;

	if (b->leaf >= b->num_leaves)
		return NULL;
	items = b->leaves[b->leaf].items_end - from;
	/* Mostly it is that of the next item. */
	for (at = b->next; items--; at++) {
		struct share_extent *e;

		if (at >= b->leaves[b->leaf].items_end)
			at = from;
		e = &b->extents[b->places[at]];
		if (e->bytenr == bytenr && e->refs.inode == inode) {
			b->next = at + 1;
			return e;
		}
	}
	return NULL;
}
