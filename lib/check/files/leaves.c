// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processes the trees from the leaves up. First come leaves that several nodes point to, and those that are the root of
 * a tree, in address order; their summaries are kept. Then come the nodes of level 1, which read their other leaves, in
 * address order too, and then the higher levels one by one. Each leaf is therefore read once, no matter how many trees
 * share it, and only its summary is kept. The leaves and nodes of a level are divided among the threads.
 */
#include <stdlib.h>

#include "lib/base/each.h"
#include "lib/check/files/circles.h"
#include "lib/check/files/leaf.h"
#include "lib/check/files/leaves.h"
#include "lib/check/files/span.h"
#include "lib/check/files/span_tree.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/sweep/copies.h"
#include "lib/sweep/drop.h"

static void report_child(struct check *c, const struct check_block *b, const struct btrkit_key *key, uint64_t child,
			 const char *message)
{
	check_report_at(c, CHECK_BLOCK_PARENT, &(struct check_location){ leaves_tree(c, b), child, key, "key" }, "%s",
			message);
}

/* Checks that the keys of a child lie between the pointer to it and the next pointer. */
static void check_keys(struct check *c, const struct check_block *b, const struct node *n, uint32_t slot,
		       const struct below *child)
{
	const struct btrkit_key key = node_key(n, slot);
	const uint64_t bytenr = le64_get(node_ptrs(n)[slot].blockptr);
	struct btrkit_key next;

	if (child->lost)
		return;
	if (child->empty) {
		report_child(c, b, &key, bytenr, "tree block is empty, but not the root of a tree");
		return;
	}
	if (key_cmp(&child->first, &key))
		report_child(c, b, &key, bytenr, "first key of tree block does not match its parent");
	if (slot + 1 == n->nritems)
		return;
	next = node_key(n, slot + 1);
	if (key_cmp(&child->last, &next) >= 0)
		report_child(c, b, &next, bytenr, "last key below the tree block is not less than the next key");
}

/* Gets the summary of a child, if there is one. A leaf that has not been read is added to reader.wanted. */
static void take_child(struct reader *r, const struct node_ref *ref, struct below *ret, size_t *num_wanted)
{
	struct leaves *l = r->l;
	struct check_block *b = check_find_block(&l->c->tables, ref->bytenr, &r->block_hint);

	*ret = (struct below){ .lost = true };
	span_lost(&ret->span);
	if (!b || check_block_level(b) != ref->level || b->generation != ref->generation)
		return;
	if (b->below)
		*ret = *leaves_below(l, b);
	else if (!ref->level)
		r->wanted[(*num_wanted)++] = (struct wanted){ b, ret };
}

/* Blocks in the table are sorted by address, so comparing pointers is enough. */
static int compare_wanted(const void *x, const void *y)
{
	const struct check_block *a = ((const struct wanted *)x)->block, *b = ((const struct wanted *)y)->block;

	return a < b ? -1 : a > b;
}

static void read_children(struct reader *r, const struct node *n, uint32_t from)
{
	struct btrkit_key key;
	size_t num = 0;

	for (uint32_t i = from; i < n->nritems; i++) {
		const struct node_ref ref = node_child(n, i, 0, &key);

		take_child(r, &ref, &r->children[i], &num);
	}
	if (num > 1)
		qsort(r->wanted, num, sizeof(*r->wanted), compare_wanted);
	leaves_read(r, num);
}

/* Merges the summaries of a node's children. */
static void join_children(struct reader *r, const struct check_block *b, const struct node *n, struct below *all)
{
	struct check *c = r->l->c;
	const uint32_t from = check_first_slot(c, b, n, NULL);

	read_children(r, n, from);
	for (uint32_t i = from; i < n->nritems; i++) {
		const struct below *child = &r->children[i];

		check_keys(c, b, n, i, child);
		if (i == from) {
			*all = *child;
			continue;
		}
		if (leaves_are_files(b))
			span_join(c, leaves_tree(c, b), &all->span, &child->span);
		if (!child->lost && !child->empty)
			all->last = child->last;
	}
	/* This also holds for a node whose first children have been dropped. */
	all->first = node_key(n, 0);
	all->lost = all->empty = false;
}

static void read_node(struct reader *r, struct check_block *b, struct below *all)
{
	struct check *c = r->l->c;
	const struct node_ref ref = check_block_ref(c, b);
	struct node n;

	*all = (struct below){ .lost = true };
	span_lost(&all->span);
	/* Damage to the node was reported by walk.c. */
	if (!(atomic_load(&b->state) & CHECK_LOST) && check_reread(c, &ref, r->node)) {
		n = check_node(c, r->node);
		join_children(r, b, &n, all);
	}
}

/* A unit of work for a thread: some shared leaves, or a node and its unshared leaves. */
static void work(void *ctx, size_t piece)
{
	struct leaves *l = ctx;
	const size_t from = piece * l->at_a_time;
	const size_t n = l->num_work - from < l->at_a_time ? l->num_work - from : l->at_a_time;
	struct reader *r = check_failed(l->c) ? NULL : leaves_take_reader(l);
	size_t num = 0;

	for (size_t i = from; i < from + n; i++) {
		struct check_block *b = check_block_at(&l->c->tables, l->work[i]);

		if (!r)
			span_lost(&leaves_below(l, b)->span);
		else if (check_block_level(b))
			read_node(r, b, leaves_below(l, b));
		else
			r->wanted[num++] = (struct wanted){ b, leaves_below(l, b) };
	}
	if (r) {
		leaves_read(r, num);
		leaves_put_reader(l, r);
	}
	check_progress(l->c, n);
}

/* Whether a summary is kept for a block. */
static bool is_kept(const struct check_block *b)
{
	const unsigned state = atomic_load(&b->state);

	return state & CHECK_REACHED && (check_block_level(b) || state & (CHECK_AGAIN | CHECK_ROOT));
}

static int number_blocks(struct leaves *l)
{
	struct check_tables *t = &l->c->tables;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	size_t n = 0;
	int ret;

	for (size_t i = 0; i < t->blocks.n; i++) {
		struct check_block *b = check_block_at(t, i);

		if (is_kept(b))
			b->below = (uint32_t)++n;
		if (b->state & CHECK_REACHED && !check_block_level(b))
			l->c->result.blocks++;
	}
	l->work = calloc(n ? n : 1, sizeof(*l->work));
	if (!l->work)
		return check_fail(l->c, err_nomem(&err), &err);
	ret = check_table_reserve(t, &l->below, n, &err);
	return ret ? check_fail(l->c, ret, &err) : 0;
}

static void read_level(struct leaves *l, unsigned level)
{
	struct check_tables *t = &l->c->tables;

	l->num_work = 0;
	for (size_t i = 0; i < t->blocks.n; i++) {
		const struct check_block *b = check_block_at(t, i);

		if (b->below && check_block_level(b) == level)
			l->work[l->num_work++] = i;
	}
	/* Each node is much work. */
	l->at_a_time = level ? 1 : SWEEP_RUN_BYTES / l->c->items.nodesize;
	each((l->num_work + l->at_a_time - 1) / l->at_a_time, l->c->threads, work, l);
}

/* Sets blocks_lost if any leaf was lost, because its references are missing. */
static void note_lost(struct leaves *l)
{
	struct check_tables *t = &l->c->tables;

	for (size_t i = 0; i < t->blocks.n; i++)
		l->c->blocks_lost |= !!(check_block_at(t, i)->state & CHECK_LOST);
}

static void end_tree(struct leaves *l, const struct check_root *root, const struct check_block *top)
{
	const struct span *all = &leaves_below(l, top)->span;

	if (span_tree(l->c, root, all))
		check_circles(l, root, top, all->dirs);
}

static void end_trees(struct leaves *l)
{
	struct check *c = l->c;
	const struct check_root *roots = c->roots.at;

	for (size_t i = 0; i < c->roots.n && !check_failed(c); i++) {
		const struct tree_root *root = &roots[i].root;
		const struct check_block *b;

		if (!sweep_has_files(root->id) || root->id == OID_TREE_RELOC || roots[i].drop.begun ||
		    !check_root_valid(c, &roots[i]))
			continue;
		b = check_find_block(&c->tables, root->bytenr, NULL);
		if (b && b->below && check_block_level(b) == root->level && b->state & CHECK_WHOLE)
			end_tree(l, &roots[i], b);
	}
}

int check_leaves(struct check *c)
{
	struct leaves l = { .c = c, .below = { .entry = sizeof(struct below), .fd = -1 } };

	pthread_mutex_init(&l.lock, NULL);
	if (!number_blocks(&l)) {
		for (unsigned level = 0; level < LEVELS_MAX && !check_failed(c); level++)
			read_level(&l, level);
		note_lost(&l);
		end_trees(&l);
	}
	leaves_free_readers(&l);
	pthread_mutex_destroy(&l.lock);
	check_table_release(&c->tables, &l.below);
	free(l.work);
	return c->failed;
}
