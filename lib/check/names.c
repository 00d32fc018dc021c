// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A tree whose names do not come out even. What is said of one name in one directory belongs together, wherever it is
 * said: by the directory, in two lists, and by inodes. A first pass adds up by what few bits of its hash the names are
 * that contradict, a second one keeps what is said of those, and that is then held against each other.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lib/check/span.h"
#include "lib/format/items/dir.h"

#define BUCKETS (1u << 14)
#define TREES_MAX 64 /* that are gone through, each for contradictions of its own */

enum fact_kind {
	FACT_ITEM,
	FACT_INDEX,
	FACT_REF
};

struct fact {
	uint64_t name; /* the hash of name and directory */
	uint64_t dir, index;
	struct btrkit_key location; /* of an inode or a subvolume */
	uint64_t entry;		    /* the hash of it with its type */
	uint8_t type, kind;
	struct btrkit_key key; /* where it is said */
};

struct bucket {
	uint64_t names, entries;
};

struct names {
	struct check *c;
	const struct check_root *root;
	struct cursor cur;
	uint64_t inode; /* the current one, */
	uint8_t type;	/* what it is by its item; 0: it has none; */
	bool gone;	/* and whether it waits to be deleted: see inode.c */
	struct bucket *buckets;
	bool second; /* the pass */
	struct check_list facts;
	uint64_t told;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;
	int cmp = compare_numbers(x->name, y->name);

	if (!cmp)
		cmp = x->kind - y->kind;
	return cmp ? cmp : key_cmp(&x->key, &y->key);
}

/* @return 0, or the failure that ends the check */
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
		n->type = span_mode_type(le32_get(d->mode));
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
	ret = cursor_seek(&n->cur, &first, NULL);
	while (!ret) {
		ret = check_failed(n->c) ? -ECANCELED : take(n, &n->cur.item);
		if (!ret)
			ret = cursor_next(&n->cur, NULL);
	}
	cursor_release(&n->cur);
	return ret < 0 ? ret : 0;
}

static void say(struct names *n, enum check_code code, const struct fact *f, const char *field, const char *words)
{
	const struct check_place at = { n->root->root.id, 0, &f->key, field };

	if (f->location.type == KEY_ROOT_ITEM)
		check_say(n->c, code, &at, "%s; directory %" PRIu64 ", subvolume %" PRIu64, words, f->dir,
			  f->location.objectid);
	else
		check_say(n->c, code, &at, "%s; directory %" PRIu64 ", inode %" PRIu64, words, f->dir,
			  f->location.objectid);
	n->told++;
}

static void say_values(struct names *n, enum check_code code, const struct fact *f, const char *field,
		       const char *words, uint64_t found, uint64_t expected)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	err_corrupt(&what, field, "%s; directory %" PRIu64 ", inode %" PRIu64, words, f->dir, f->location.objectid);
	err_at_tree(&what, n->root->root.id);
	err_at_key(&what, &f->key);
	check_tell_values(n->c, code, &what, found, expected);
	n->told++;
}

/* All that is said of a name. */
struct group {
	const struct fact *items, *indexes, *refs;
	size_t num_items, num_indexes, num_refs;
};

/* What the inode says, if it does; one that says the same index rather than another. */
static const struct fact *ref_of(const struct group *g, const struct fact *entry)
{
	const struct fact *found = NULL;

	for (size_t i = 0; i < g->num_refs; i++)
		if (g->refs[i].location.objectid == entry->location.objectid &&
		    (!found || g->refs[i].index == entry->index))
			found = &g->refs[i];
	return found;
}

/* An entry that leads to an inode. The inode's own names are judged when it is there. */
static void judge_child(struct names *n, const struct group *g, const struct fact *entry)
{
	const struct fact *ref = ref_of(g, entry);
	const struct btrkit_key key = { entry->location.objectid, KEY_INODE_ITEM, 0 };
	struct cursor cur;
	int ret;

	if (entry->location.type == KEY_ROOT_ITEM)
		return;
	if (ref) {
		if (entry->kind == FACT_INDEX && ref->index != entry->index)
			say_values(n, CHECK_NAME_INDEX, ref, "index",
				   "another index than the directory has for the name", ref->index, entry->index);
		if (!ref->type)
			n->told++; /* that it has no item */
		else if (ref->type != entry->type)
			say_values(n, CHECK_NAME_TYPE, entry, "type", "entry of another type than its inode",
				   entry->type, ref->type);
		return;
	}
	cursor_init(&cur, n->c->fs, &n->root->root);
	ret = cursor_find(&cur, &key, NULL);
	cursor_release(&cur);
	if (ret >= 0)
		say(n, ret ? CHECK_NAME_NO_INODE : CHECK_NAME_NO_REF, entry, "location",
		    ret ? "the inode of an entry is not there" : "the inode of an entry does not have its name");
}

static void judge_entries(struct names *n, const struct group *g)
{
	for (size_t i = 0; i < g->num_indexes; i++) {
		const struct fact *index = &g->indexes[i];

		if (i)
			say(n, CHECK_DIR_DUPLICATE, index, "name", "the directory has the name with another index too");
		if (!g->num_items)
			say(n, CHECK_NAME_NO_ITEM, index, NULL, "the entry is not there by its name");
		else if (!i && g->items->entry != index->entry)
			say(n, CHECK_NAME_DIFFERS, index, "location", "the entry is another one by its name");
		judge_child(n, g, index);
	}
	if (g->num_indexes)
		return;
	for (size_t i = 0; i < g->num_items; i++) {
		say(n, CHECK_NAME_NO_INDEX, &g->items[i], NULL, "the entry is not there by its index");
		judge_child(n, g, &g->items[i]);
	}
}

static bool has_child(const struct fact *entries, size_t num, uint64_t inode)
{
	for (size_t i = 0; i < num; i++)
		if (entries[i].location.type != KEY_ROOT_ITEM && entries[i].location.objectid == inode)
			return true;
	return false;
}

static void judge_refs(struct names *n, const struct group *g)
{
	for (size_t i = 0; i < g->num_refs; i++) {
		const struct fact *ref = &g->refs[i];
		const uint64_t inode = ref->location.objectid;

		if (i && ref[-1].location.objectid == inode)
			say(n, CHECK_NAME_TWICE, ref, "name", "the inode has the name twice");
		else if (!has_child(g->indexes, g->num_indexes, inode) && !has_child(g->items, g->num_items, inode))
			say(n, CHECK_NAME_NO_ENTRY, ref, "name", "the directory has no entry of the name");
	}
}

/* Entries and names that are the same in many places would take the square of their number. */
#define GROUP_MAX 64

static size_t count(const struct fact *f, size_t n, uint64_t name, enum fact_kind kind)
{
	size_t i = 0;

	while (i < n && f[i].name == name && f[i].kind == kind)
		i++;
	return i;
}

static void judge_groups(struct names *n)
{
	const struct fact *f = n->facts.at;
	size_t left = n->facts.n;

	while (left) {
		const uint64_t name = f->name;
		struct group g = { .items = f, .num_items = count(f, left, name, FACT_ITEM) };
		size_t all;

		g.indexes = f + g.num_items;
		g.num_indexes = count(g.indexes, left - g.num_items, name, FACT_INDEX);
		g.refs = g.indexes + g.num_indexes;
		all = g.num_items + g.num_indexes;
		g.num_refs = count(g.refs, left - all, name, FACT_REF);
		all += g.num_refs;
		if (g.num_refs > GROUP_MAX)
			g.num_refs = GROUP_MAX;
		if (g.num_items > GROUP_MAX)
			g.num_items = GROUP_MAX;
		if (g.num_indexes > GROUP_MAX)
			g.num_indexes = GROUP_MAX;
		judge_entries(n, &g);
		judge_refs(n, &g);
		f += all;
		left -= all;
	}
}

/* @return whether the tree is to be gone through: none with the same contradictions was, and not too many others */
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
	const struct check_place at = { root->root.id, 0, NULL, NULL };
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
		if (!ret && n.facts.n) {
			qsort(n.facts.at, n.facts.n, sizeof(struct fact), compare);
			judge_groups(&n);
		}
		many = !ret && !n.told;
		free(n.facts.at);
		free(n.buckets);
	}
	if (many && !check_failed(c))
		check_say(c, CHECK_NAME_SUM, &at, "names in the tree contradict each other");
}
