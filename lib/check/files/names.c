// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Examines a tree whose sums of names do not cancel out. A name in a directory occurs in three places: in a DIR_ITEM,
 * in a DIR_INDEX and in a ref of the inode. The first pass sums them up by a few bits of their hashes, to find where
 * the contradictions are. The second pass collects the facts about the names there, which are then compared.
 */
#include <stdlib.h>

#include "lib/check/files/names.h"
#include "lib/check/files/names_check.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_dir.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/format/items/files/dir.h"

#define BUCKETS (1u << 14)
#define TREES_MAX 64 /* limit on trees that are examined, each with different contradictions */

/* @return 0, or the error that ends the check */
static int add_fact(struct names *n, const struct fact *f)
{
	struct bucket *b = &n->buckets[f->name % BUCKETS];
	const uint64_t child = span_hash_child(n->c, f->name, f->index, f->location.objectid) *
			       span_hash_type(n->c, f->type);
	struct fact *to;

	if (n->second) {
		if (!b->names && !b->entries)
			return 0;
		to = check_list_add(n->c, &n->facts, sizeof(*to));
		if (to)
			*to = *f;
		return to ? 0 : -ENOMEM;
	}
	if (f->kind == FACT_REF)
		b->names -= child;
	else if (f->kind == FACT_INDEX && f->location.type != KEY_ROOT_ITEM)
		b->names += child;
	if (f->kind != FACT_REF)
		b->entries += f->kind == FACT_INDEX ? f->entry : -f->entry;
	return 0;
}

static int take_entries(struct names *n, const struct item *item)
{
	const bool index = item->key.type == KEY_DIR_INDEX;
	struct dir_iter it = dir_first(item);
	struct dir_entry e;
	int ret = 0;

	while (!ret && !dir_next(&it, &e, NULL)) {
		const uint64_t name = span_hash_name(n->c, item->key.objectid, e.name, e.name_len);

		ret = add_fact(n, &(struct fact){ .name = name,
						  .dir = item->key.objectid,
						  .index = index ? item->key.offset : 0,
						  .location = e.location,
						  .entry = span_hash_entry(n->c, name, &e.location, e.type),
						  .type = e.type,
						  .kind = index ? FACT_INDEX : FACT_ITEM,
						  .key = item->key });
	}
	return ret;
}

static int take_refs(struct names *n, const struct item *item)
{
	struct inode_ref_iter it = inode_ref_first(item);
	struct inode_ref ref;
	int ret = 0;

	while (!ret && !inode_ref_next(&it, &ref, NULL)) {
		if (span_is_dotdot(&ref, item->key.objectid))
			continue;
		ret = add_fact(n, &(struct fact){ .name = span_hash_name(n->c, ref.parent, ref.name, ref.name_len),
						  .dir = ref.parent,
						  .index = ref.index,
						  .location = { item->key.objectid, KEY_INODE_ITEM, 0 },
						  .len = (uint16_t)ref.name_len,
						  .type = n->type,
						  .kind = FACT_REF,
						  .key = item->key });
	}
	return ret;
}

static int take(struct names *n, const struct item *item)
{
	const struct disk_inode_item *d = (const struct disk_inode_item *)item->data;

	if (n->inode != item->key.objectid) {
		n->inode = item->key.objectid;
		n->type = FT_UNKNOWN;
		n->gone = false;
	}
	switch (item->key.type) {
	case KEY_INODE_ITEM:
		if (item->size < sizeof(*d))
			return 0;
		n->type = dir_type_of_mode(le32_get(d->mode));
		n->gone = !le32_get(d->nlink) && n->inode != OID_FIRST_FREE;
		return 0;
	case KEY_INODE_REF:
	case KEY_INODE_EXTREF:
		return take_refs(n, item);
	case KEY_DIR_ITEM:
	case KEY_DIR_INDEX:
		return n->gone ? 0 : take_entries(n, item);
	default:
		return 0;
	}
}

static int pass(struct names *n)
{
	const struct btrkit_key first = { 0, 0, 0 };
	int ret;

	n->inode = 0;
	n->type = FT_UNKNOWN;
	cursor_init(&n->cur, n->c->fs, &n->root->root);
	n->cur.scan = true;
	n->cur.once = true;
	ret = check_seek(n->c, &n->cur, &first);
	while (!ret) {
		ret = check_failed(n->c) ? -ECANCELED : take(n, &n->cur.item);
		if (!ret)
			ret = check_next(n->c, &n->cur);
	}
	cursor_release(&n->cur);
	return ret < 0 ? ret : 0;
}

/* @return whether to examine the tree: no other one had the same contradictions; *many: the limit was reached */
static bool is_news(struct check *c, const struct span *all, bool *many)
{
	const struct bucket *known = c->names.at;
	struct bucket *to;

	for (size_t i = 0; i < c->names.n; i++)
		if (known[i].names == all->names && known[i].entries == all->entries)
			return false;
	*many = c->names.n >= TREES_MAX;
	if (*many)
		return false;
	to = check_list_add(c, &c->names, sizeof(*to));
	if (to)
		*to = (struct bucket){ all->names, all->entries };
	return to;
}

void span_names(struct check *c, const struct check_root *root, const struct span *all)
{
	const struct check_location at = { root->root.id, 0, NULL, NULL };
	int ret;
	struct names n = { .c = c, .root = root };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	bool many = false;

	if (is_news(c, all, &many)) {
		n.buckets = calloc(BUCKETS, sizeof(*n.buckets));
		if (!n.buckets) {
			check_fail(c, err_nomem(&err), &err);
			return;
		}
		ret = pass(&n);
		n.second = true;
		if (!ret)
			ret = pass(&n);
		if (!ret && n.facts.n)
			names_check(&n);
		many = !ret && !n.reported;
		free(n.facts.at);
		free(n.buckets);
	}
	if (many && !check_failed(c))
		check_report_at(c, CHECK_NAME_SUM, &at, "directory entries and inode refs in the tree do not match");
}
