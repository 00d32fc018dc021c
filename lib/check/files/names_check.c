// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares the facts about names. Facts about the same name are compared first. If one place has a different name than
 * the others, that is reported once; therefore the entries and names of an inode in a directory are looked up as well.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/check/codes.h"
#include "lib/check/files/inode.h"
#include "lib/check/files/names.h"
#include "lib/check/files/names_check.h"
#include "lib/check/files/span.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"

/* Limits the quadratic cost of comparing many equal entries and names. */
#define GROUP_MAX 64

struct checking {
	struct names *n;
	struct fact **children; /* sorted by directory and target */
	struct array links;
};

/* What an inode lacks or has too much, as reported: names, or bytes of the names of a directory's entries. */
struct link {
	uint64_t inode, lacking;
	bool entries;
};

/* All facts about a name. */
struct group {
	struct fact *items, *indexes, *refs;
	size_t num_items, num_indexes, num_refs;
};

static int compare(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;
	int cmp = check_compare(x->name, y->name);

	if (!cmp)
		cmp = x->kind - y->kind;
	return cmp ? cmp : key_cmp(&x->key, &y->key);
}

static int compare_children(const struct fact *x, const struct fact *y)
{
	int cmp = check_compare(x->dir, y->dir);

	if (!cmp)
		cmp = check_compare(x->location.objectid, y->location.objectid);
	if (!cmp)
		cmp = x->location.type - y->location.type;
	return cmp ? cmp : x->kind - y->kind;
}

static int compare_pointers(const void *a, const void *b)
{
	return compare_children(*(struct fact *const *)a, *(struct fact *const *)b);
}

static void report_fact(struct names *n, enum check_code code, const struct fact *f, const char *field,
			const char *words)
{
	const struct check_location at = { n->root->root.id, 0, &f->key, field };

	if (f->location.type == KEY_ROOT_ITEM)
		check_report_at(n->c, code, &at, "%s, directory %" PRIu64 ", subvolume %" PRIu64, words, f->dir,
				f->location.objectid);
	else
		check_report_at(n->c, code, &at, "%s, directory %" PRIu64 ", inode %" PRIu64, words, f->dir,
				f->location.objectid);
	n->reported++;
}

static void report_fact_values(struct names *n, enum check_code code, const struct fact *f, const char *field,
			       const char *words, uint64_t found, uint64_t expected)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	err_corrupt(&what, field, "%s, directory %" PRIu64 ", inode %" PRIu64, words, f->dir, f->location.objectid);
	err_at_tree(&what, n->root->root.id);
	err_at_key(&what, &f->key);
	check_report_values(n->c, code, &what, found, expected);
	n->reported++;
}

/* Finds the facts of a kind about the same inode in the same directory. @return their number, up to GROUP_MAX */
static size_t find_children(const struct checking *j, const struct fact *like, enum fact_kind kind, struct fact ***ret)
{
	struct fact wanted = *like;
	size_t low = 0, high = j->n->facts.n, n = 0;

	wanted.kind = kind;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (compare_children(j->children[mid], &wanted) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = j->children + low;
	while (n < GROUP_MAX && low + n < j->n->facts.n && !compare_children((*ret)[n], &wanted))
		n++;
	return n;
}

/* The inode's ref for an entry, preferably with the same index, or NULL. */
static const struct fact *ref_of(const struct group *g, const struct fact *entry)
{
	const struct fact *found = NULL;

	for (size_t i = 0; i < g->num_refs; i++)
		if (g->refs[i].location.objectid == entry->location.objectid &&
		    (!found || g->refs[i].index == entry->index))
			found = &g->refs[i];
	return found;
}

/* Whether the inode has that index in that directory under another name. That is reported elsewhere. */
static bool has_other_name(const struct checking *j, const struct fact *index)
{
	struct fact **refs;
	const size_t n = find_children(j, index, FACT_REF, &refs);

	for (size_t i = 0; i < n; i++)
		if (refs[i]->index == index->index)
			return true;
	return false;
}

static void add_link(struct checking *j, uint64_t inode, bool entries, uint64_t lacking)
{
	struct link *to = check_list_add(j->n->c, &j->links, sizeof(*to));

	if (to)
		*to = (struct link){ inode, lacking, entries };
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	const int cmp = check_compare(x->inode, y->inode);

	return cmp ? cmp : x->entries - y->entries;
}

/* Withdraws findings about counters of inodes that only follow from wrong names. */
static void end_links(struct checking *j)
{
	struct link *l = j->links.at;

	if (j->links.n)
		qsort(l, j->links.n, sizeof(*l), compare_links);
	for (size_t i = 0, end; i < j->links.n; i = end) {
		uint64_t lacking = 0;

		for (end = i; end < j->links.n && !compare_links(&l[end], &l[i]); end++)
			lacking += l[end].lacking;
		span_names_known(j->n->c, j->n->root->root.id, l[i].inode, l[i].entries, lacking);
	}
	free(l);
}

static void check_ref(struct checking *j, const struct fact *entry, const struct fact *ref)
{
	/* The impossible index itself is reported. */
	if (entry->kind == FACT_INDEX && !span_index_possible(entry->index))
		j->n->reported++;
	else if (entry->kind == FACT_INDEX && ref->index != entry->index)
		report_fact_values(j->n, CHECK_NAME_INDEX, ref, "index",
				   "index in the inode ref differs from that of the directory entry", ref->index,
				   entry->index);
	if (!ref->type)
		j->n->reported++; /* the missing inode item is reported */
	else if (ref->type != entry->type)
		report_fact_values(j->n, CHECK_NAME_TYPE, entry, "type",
				   "file type in the directory entry differs from that of the inode", entry->type,
				   ref->type);
}

/* Checks an entry that points to an inode. The inode's own names are only compared if it exists. */
static void check_child(struct checking *j, const struct group *g, const struct fact *entry)
{
	const struct fact *ref = ref_of(g, entry);
	const struct btrkit_key key = { entry->location.objectid, KEY_INODE_ITEM, 0 };
	struct cursor cur;
	int ret;

	if (entry->location.type == KEY_ROOT_ITEM)
		return;
	if (ref) {
		check_ref(j, entry, ref);
		return;
	}
	if (entry->kind == FACT_INDEX && has_other_name(j, entry))
		return;
	cursor_init(&cur, j->n->c->fs, &j->n->root->root);
	ret = check_find(j->n->c, &cur, &key);
	cursor_release(&cur);
	if (!ret)
		add_link(j, key.objectid, false, 1);
	if (ret >= 0)
		report_fact(j->n, ret ? CHECK_NAME_NO_INODE : CHECK_NAME_NO_REF, entry, "location",
			    ret ? "directory entry points to a missing inode" :
				  "inode has no ref for the directory entry");
}

static bool same_location(const struct fact *a, const struct fact *b)
{
	return !key_cmp(&a->location, &b->location);
}

/* @return whether nothing else needs to be reported about the index */
static bool check_differing(struct checking *j, const struct group *g, const struct fact *index)
{
	const struct fact *item = g->items, *ref = ref_of(g, index);

	/* An invalid location was reported when the item was read. */
	if (!item->location.type || !index->location.type) {
		j->n->reported++;
		return false;
	}
	/* A type that differs from the inode's is reported as such. */
	if (same_location(item, index) && ref && ref->type && index->type != ref->type)
		return false;
	report_fact(j->n, CHECK_NAME_DIFFERS, index, "location", "DIR_ITEM and DIR_INDEX of the name differ");
	/* The inode's ref decides which of the two is right. */
	ref = ref_of(g, item);
	return !same_location(item, index) && ref && ref->index == index->index;
}

static void check_indexes(struct checking *j, const struct group *g)
{
	for (size_t i = 0; i < g->num_indexes; i++) {
		const struct fact *index = &g->indexes[i];
		bool all = false;

		if (i)
			report_fact(j->n, CHECK_DIR_DUPLICATE, index, "name",
				    "directory has several DIR_INDEX items for the name");
		if (!g->num_items)
			report_fact(j->n, CHECK_NAME_NO_ITEM, index, NULL,
				    "DIR_INDEX without a DIR_ITEM of the same name");
		else if (!i && g->items->entry != index->entry)
			all = check_differing(j, g, index);
		if (!all)
			check_child(j, g, index);
	}
}

static void check_entries(struct checking *j, const struct group *g)
{
	/* The duplicate was reported when the item was read. */
	if (g->num_items > 1)
		j->n->reported++;
	check_indexes(j, g);
	for (size_t i = 0; i < g->num_items && !g->num_indexes; i++) {
		if (g->items[i].known)
			continue;
		report_fact(j->n, CHECK_NAME_NO_INDEX, &g->items[i], NULL,
			    "DIR_ITEM without a DIR_INDEX of the same name");
		check_child(j, g, &g->items[i]);
	}
}

static bool has_child(const struct fact *entries, size_t num, uint64_t inode)
{
	for (size_t i = 0; i < num; i++)
		if (entries[i].location.type != KEY_ROOT_ITEM && entries[i].location.objectid == inode)
			return true;
	return false;
}

static void verify_refs(struct checking *j, const struct group *g)
{
	for (size_t i = 0; i < g->num_refs; i++) {
		const struct fact *ref = &g->refs[i];
		const uint64_t inode = ref->location.objectid;
		const bool twice = i && ref[-1].location.objectid == inode;

		if (twice)
			report_fact(j->n, CHECK_NAME_TWICE, ref, "name", "inode has two refs for the same name");
		else if (!has_child(g->indexes, g->num_indexes, inode) && !has_child(g->items, g->num_items, inode))
			report_fact(j->n, CHECK_NAME_NO_ENTRY, ref, "name", "directory has no entry for the inode ref");
		else
			continue;
		add_link(j, inode, false, UINT64_MAX);
		if (!twice)
			add_link(j, ref->dir, true, 2 * (uint64_t)ref->len);
	}
}

static size_t count(const struct fact *f, size_t n, uint64_t name, enum fact_kind kind)
{
	size_t i = 0;

	while (i < n && f[i].name == name && f[i].kind == kind)
		i++;
	return i;
}

/* Groups the facts about a name, of which @f is the first. @return their number */
static size_t group_at(struct fact *f, size_t left, struct group *g)
{
	g->items = f;
	g->num_items = count(f, left, f->name, FACT_ITEM);
	g->indexes = f + g->num_items;
	g->num_indexes = count(g->indexes, left - g->num_items, f->name, FACT_INDEX);
	g->refs = g->indexes + g->num_indexes;
	g->num_refs = count(g->refs, left - g->num_items - g->num_indexes, f->name, FACT_REF);
	return g->num_items + g->num_indexes + g->num_refs;
}

static size_t most(size_t n)
{
	return n < GROUP_MAX ? n : GROUP_MAX;
}

static void each_group(struct checking *j, void (*take)(struct checking *j, struct group *g))
{
	struct fact *f = j->n->facts.at;
	size_t left = j->n->facts.n;

	while (left) {
		struct group g;
		const size_t all = group_at(f, left, &g);

		take(j, &g);
		f += all;
		left -= all;
	}
}

static void mark_unindexed(struct checking *j, struct group *g)
{
	(void)j;
	for (size_t i = 0; i < g->num_items; i++)
		g->items[i].unindexed = !g->num_indexes;
}

/* If a DIR_INDEX has no DIR_ITEM of its name, but one of the same inode with another name, reports the DIR_INDEX. */
static void pair(struct checking *j, struct group *g)
{
	struct fact **items;

	if (!g->num_indexes || g->num_items)
		return;
	for (size_t i = 0; i < most(g->num_indexes); i++) {
		const size_t n = find_children(j, &g->indexes[i], FACT_ITEM, &items);
		size_t k = 0;

		while (k < n && (!items[k]->unindexed || items[k]->known))
			k++;
		if (k < n)
			items[k]->known = true;
	}
}

static void compare_group(struct checking *j, struct group *g)
{
	g->num_items = most(g->num_items);
	g->num_indexes = most(g->num_indexes);
	g->num_refs = most(g->num_refs);
	check_entries(j, g);
	verify_refs(j, g);
}

void names_check(struct names *n)
{
	struct checking j = { .n = n, .children = malloc(n->facts.n * sizeof(*j.children)) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct fact *facts = n->facts.at;

	if (!j.children) {
		check_fail(n->c, err_nomem(&err), &err);
		return;
	}
	qsort(facts, n->facts.n, sizeof(*facts), compare);
	for (size_t i = 0; i < n->facts.n; i++)
		j.children[i] = &facts[i];
	qsort(j.children, n->facts.n, sizeof(*j.children), compare_pointers);
	each_group(&j, mark_unindexed);
	each_group(&j, pair);
	each_group(&j, compare_group);
	end_links(&j);
	free(j.children);
}
