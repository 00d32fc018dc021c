// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares the references in the extent tree ("told") with those in the trees ("made"). If both agree, the sum of an
 * extent is 0. For the other extents, both kinds are collected and compared, some thousand extents at a time.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/each.h"
#include "lib/check/files/file_refs.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/refs.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/io/buffer.h"

#define AT_A_TIME 16384u
#define TIMES_MAX 64u /* the limit; above it, one finding covers all */

struct ref {
	uint64_t bytenr;
	uint64_t root_or_parent;
	uint64_t objectid, offset;
	uint64_t count;
	uint8_t type;
};

struct refs {
	struct check *c;
	struct array wanted;	     /* uint64_t: sorted addresses */
	struct array recorded, made; /* struct ref */
	size_t extent, block;	     /* positions in the tables */
	size_t *work;
};

static int compare(const void *x, const void *y)
{
	const struct ref *a = x, *b = y;
	int cmp = check_compare(a->bytenr, b->bytenr);

	if (!cmp)
		cmp = check_compare(a->type, b->type);
	if (!cmp)
		cmp = check_compare(a->root_or_parent, b->root_or_parent);
	if (!cmp)
		cmp = check_compare(a->objectid, b->objectid);
	if (!cmp)
		cmp = check_compare(a->offset, b->offset);
	return cmp;
}

static void want(struct refs *r, uint64_t bytenr)
{
	uint64_t *to = check_list_add(r->c, &r->wanted, sizeof(*to));

	if (to)
		*to = bytenr;
}

static bool is_wanted(const struct refs *r, uint64_t bytenr)
{
	return bsearch(&bytenr, r->wanted.at, r->wanted.n, sizeof(bytenr), check_compare_numbers);
}

/* Collects the next extents and blocks with non-zero sums. */
static void find_wanted(struct refs *r)
{
	const struct check_tables *t = &r->c->tables;

	r->wanted.n = 0;
	for (; r->extent < t->extents.n && r->wanted.n < AT_A_TIME; r->extent++) {
		const struct check_extent *e = check_extent_at(t, r->extent);

		if (e->sum && !(e->tagged & CHECK_EXTENT_DOUBT))
			want(r, check_extent_start(e));
	}
	for (; r->block < t->blocks.n && r->wanted.n < AT_A_TIME; r->block++) {
		const struct check_block *b = check_block_at(t, r->block);

		if (b->sum && !(b->tagged & (CHECK_BLOCK_DOUBT | CHECK_BLOCK_STRAY)))
			want(r, check_block_bytenr(b));
	}
	if (r->wanted.n)
		qsort(r->wanted.at, r->wanted.n, sizeof(uint64_t), check_compare_numbers);
}

/* May be called by any thread. */
static void add(struct refs *r, struct array *list, uint64_t bytenr, const struct extent_ref *ref)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	struct ref own = { .bytenr = bytenr,
			   .root_or_parent = shared ? ref->parent : ref->root,
			   .count = ref->count,
			   .type = ref->type };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct ref *to;

	if (ref->type == KEY_EXTENT_DATA_REF) {
		own.objectid = ref->objectid;
		own.offset = ref->offset;
	}
	pthread_mutex_lock(&r->c->lock);
	to = array_add(list, sizeof(*to), NULL);
	if (to)
		*to = own;
	pthread_mutex_unlock(&r->c->lock);
	if (!to)
		check_fail(r->c, err_nomem(&err), &err);
}

/* Collects the references of an extent from the extent tree. */
static void collect_told(struct refs *r, struct cursor *cur, uint64_t bytenr)
{
	const struct item_ctx *ctx = &r->c->items;
	struct extent_ref ref;
	int ret;

	for (ret = check_seek(r->c, cur, &KEY(bytenr, 0, 0)); !ret && cur->item.key.objectid == bytenr;
	     ret = check_next(r->c, cur)) {
		const uint8_t type = cur->item.key.type;
		struct extent_item ei;

		if (item_validate(ctx, &cur->item, NULL))
			continue;
		if ((type == KEY_EXTENT_ITEM || type == KEY_METADATA_ITEM) &&
		    !extent_item_decode(ctx, &cur->item, &ei, NULL)) {
			while (!extent_item_next_ref(&ei, &ref, NULL))
				if (ref.type != KEY_EXTENT_OWNER_REF)
					add(r, &r->recorded, bytenr, &ref);
		} else if (type >= KEY_TREE_BLOCK_REF && type <= KEY_SHARED_DATA_REF &&
			   !extent_keyed_ref_decode(&cur->item, &ref, NULL)) {
			add(r, &r->recorded, bytenr, &ref);
		}
	}
}

static void collect_all_told(struct refs *r)
{
	const struct check_root *root = check_find_root(r->c, OID_EXTENT_TREE);
	struct cursor cur;

	if (!root)
		return;
	cursor_init(&cur, r->c->fs, &root->root);
	for (size_t i = 0; i < r->wanted.n && !r->c->failed; i++)
		collect_told(r, &cur, ((const uint64_t *)r->wanted.at)[i]);
	cursor_release(&cur);
}

static void collect_leaf(struct refs *r, const struct node *leaf, bool full_backref)
{
	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct extent_ref ref;
		struct file_extent fe;

		if (item.key.type != KEY_EXTENT_DATA || file_extent_decode(&r->c->items, &item, &fe, NULL) ||
		    !fe.disk_bytenr || !is_wanted(r, fe.disk_bytenr))
			continue;
		ref = check_file_ref(leaf, full_backref, &item, &fe);
		add(r, &r->made, fe.disk_bytenr, &ref);
	}
}

static void collect_node(struct refs *r, const struct check_block *b, const struct node *n)
{
	const struct extent_ref ref = check_child_ref(n, b->tagged & CHECK_BLOCK_FULL);

	for (uint32_t i = check_first_slot(r->c, b, n, NULL); i < n->nritems; i++) {
		const uint64_t child = le64_get(node_ptrs(n)[i].blockptr);

		if (is_wanted(r, child))
			add(r, &r->made, child, &ref);
	}
}

/* Collects the references that a block makes. */
static void work(void *ctx, size_t i)
{
	struct refs *r = ctx;
	const struct check_block *b = check_block_at(&r->c->tables, r->work[i]);
	const struct node_ref ref = check_block_ref(r->c, b);
	uint8_t *buf = io_buffer(r->c->items.nodesize);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct node n;

	if (!buf)
		check_fail(r->c, err_nomem(&err), &err);
	else if (!check_failed(r->c) && check_reread(r->c, &ref, buf)) {
		n = check_node(r->c, buf);
		if (n.level)
			collect_node(r, b, &n);
		else
			collect_leaf(r, &n, b->tagged & CHECK_BLOCK_FULL);
	}
	free(buf);
}

static int collect_made(struct refs *r)
{
	const struct check_tables *t = &r->c->tables;
	const struct check_root *roots = r->c->roots.at;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	size_t n = 0;

	if (!r->work)
		r->work = malloc(t->blocks.n * sizeof(*r->work) + 1);
	if (!r->work)
		return check_fail(r->c, err_nomem(&err), &err);
	for (size_t i = 0; i < t->blocks.n; i++)
		if ((check_block_at(t, i)->state & (CHECK_REACHED | CHECK_LOST)) == CHECK_REACHED)
			r->work[n++] = i;
	each(n, r->c->threads, work, r);
	for (size_t i = 0; i < r->c->roots.n; i++) {
		const struct extent_ref ref = check_root_ref(&roots[i].root);

		if (check_root_valid(r->c, &roots[i]) && is_wanted(r, roots[i].root.bytenr))
			add(r, &r->made, roots[i].root.bytenr, &ref);
	}
	return r->c->failed;
}

/* Sorts references, and merges equal ones. */
static void sort_and_join(struct array *list)
{
	struct ref *refs = list->at;
	size_t kept = 0;

	if (!list->n)
		return;
	qsort(refs, list->n, sizeof(*refs), compare);
	for (size_t i = 1; i < list->n; i++) {
		if (compare(&refs[kept], &refs[i]))
			refs[++kept] = refs[i];
		else
			refs[kept].count += refs[i].count;
	}
	list->n = kept + 1;
}

static void report_refs(struct refs *r, const struct ref *ref, uint64_t recorded, uint64_t made)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	struct btrkit_error what = BTRKIT_ERROR_INIT;

	/* The missing references may be in blocks that were lost. */
	if (recorded > made && r->c->blocks_lost)
		return;
	if (ref->type == KEY_EXTENT_DATA_REF)
		err_corrupt(&what, "count",
			    "reference from tree %" PRIu64 ", inode %" PRIu64 ", offset %" PRIu64
			    ": count in the extent tree is %" PRIu64 ", should be %" PRIu64,
			    ref->root_or_parent, ref->objectid, ref->offset, recorded, made);
	else
		err_corrupt(&what, "count",
			    "reference from %s %" PRIu64 ", type %u: count in the extent tree is %" PRIu64
			    ", should be %" PRIu64,
			    shared ? "block" : "tree", ref->root_or_parent, ref->type, recorded, made);
	err_at_tree(&what, OID_EXTENT_TREE);
	err_at_logical(&what, ref->bytenr);
	check_report_values(r->c, recorded < made ? CHECK_EXTENT_REF_MISSING : CHECK_EXTENT_REF_EXTRA, &what, recorded,
			    made);
}

static void compare_refs(struct refs *r)
{
	const struct ref *recorded, *made;
	size_t i = 0, j = 0;

	sort_and_join(&r->recorded);
	sort_and_join(&r->made);
	recorded = r->recorded.at;
	made = r->made.at;
	while (i < r->recorded.n || j < r->made.n) {
		const int cmp = i == r->recorded.n ? 1 : j == r->made.n ? -1 : compare(&recorded[i], &made[j]);

		if (cmp < 0)
			report_refs(r, &recorded[i], recorded[i].count, 0);
		else if (cmp > 0)
			report_refs(r, &made[j], 0, made[j].count);
		else if (recorded[i].count != made[j].count)
			report_refs(r, &recorded[i], recorded[i].count, made[j].count);
		i += cmp <= 0;
		j += cmp >= 0;
	}
	r->recorded.n = r->made.n = 0;
}

/* All file extents of a data extent must have the same compression. */
static void check_kinds(struct check *c)
{
	for (size_t i = 0; i < c->tables.extents.n; i++) {
		const struct check_extent *e = check_extent_at(&c->tables, i);
		unsigned kinds = e->tagged & CHECK_EXTENT_KINDS;

		/* Preallocated space is not compressed. */
		if (e->tagged & CHECK_EXTENT_PREALLOC)
			kinds |= CHECK_EXTENT_KIND(BTRKIT_COMPRESSION_NONE);
		if (__builtin_popcount(kinds) > 1)
			check_report_at(c, CHECK_EXTENT_COMPRESSION,
					&(struct check_location){ .logical = check_extent_start(e),
								  .field = "compression" },
					"file extents that share an extent have different compression types");
	}
}

/* Counts what only lost blocks lead to, which is the extent of the loss: everything below the root of a lost tree. */
static void count_unreached(struct check *c)
{
	for (size_t i = 0; i < c->tables.blocks.n; i++) {
		const struct check_block *b = check_block_at(&c->tables, i);

		c->result.unreached_blocks += !(b->state & CHECK_REACHED) && !(b->tagged & CHECK_BLOCK_STRAY);
	}
	for (size_t i = 0; i < c->tables.extents.n; i++) {
		const struct check_extent *e = check_extent_at(&c->tables, i);

		if (!e->sum || e->tagged & CHECK_EXTENT_DOUBT)
			continue;
		c->result.unreached_extents++;
		c->result.unreached_data += (uint64_t)e->sectors * c->items.sectorsize;
	}
}

int check_refs(struct check *c)
{
	struct refs r = { .c = c };

	check_kinds(c);
	if (c->extents_lost)
		return 0;
	if (c->blocks_lost)
		count_unreached(c);
	for (unsigned times = 0; !check_failed(c); times++) {
		find_wanted(&r);
		if (!r.wanted.n)
			break;
		if (times == TIMES_MAX) {
			check_report_at(c, CHECK_EXTENT_REF_MISSING,
					&(struct check_location){ .tree = OID_EXTENT_TREE },
					"too many extents with wrong references, the rest was not examined");
			break;
		}
		collect_all_told(&r);
		if (!collect_made(&r))
			compare_refs(&r);
	}
	free(r.wanted.at);
	free(r.recorded.at);
	free(r.made.at);
	free(r.work);
	return c->failed;
}
