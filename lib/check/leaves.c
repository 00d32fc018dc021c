// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From the leaves up. Leaves that several nodes point to, or that are all of a tree, come first, in the order of their
 * addresses: what is in each is kept. Then the nodes right above leaves, which read their other leaves in the order of
 * keys, and at last those above, level by level. So each leaf is read once, whoever shares it, and what is kept of it
 * is what those have to know who come after it. Threads share out leaves and nodes among themselves.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/each.h"
#include "lib/check/span.h"
#include "lib/check/walk.h"
#include "lib/volume/volume.h"

/* What is known of all that lies below a block, itself included. */
struct below {
	struct btrkit_key first, last;
	bool lost, empty;
	struct span span; /* in trees of files */
};

struct leaves {
	struct check *c;
	struct check_table below; /* struct below, in the order of the numbers that blocks have */
	size_t *work;		  /* numbers of blocks in the table */
	size_t num_work;
};

static struct below *below_of(const struct leaves *l, const struct check_block *b)
{
	return (struct below *)l->below.at + (b->below - 1);
}

/* One thread's. */
struct reader {
	struct leaves *l;
	struct check_hints hints;
	size_t block_hint;
	uint8_t *buf;
};

/* The tree that a block's findings are told of: in trees of files the one that it was made for. */
static uint64_t tree_of(const struct check *c, const struct check_block *b)
{
	return check_reached_by(c, b)->root.id;
}

static bool is_files(const struct check_block *b)
{
	return atomic_load(&b->state) & CHECK_FILES;
}

/* Item types that belong into one tree. */
static const struct {
	uint8_t first, last;
	uint64_t tree;
} homes[] = {
	{ KEY_ROOT_ITEM, KEY_ROOT_ITEM, OID_ROOT_TREE },
	{ KEY_ROOT_BACKREF, KEY_ROOT_BACKREF, OID_ROOT_TREE },
	{ KEY_ROOT_REF, KEY_ROOT_REF, OID_ROOT_TREE },
	{ KEY_EXTENT_ITEM, KEY_EXTENT_ITEM, OID_EXTENT_TREE },
	{ KEY_METADATA_ITEM, KEY_METADATA_ITEM, OID_EXTENT_TREE },
	{ KEY_EXTENT_OWNER_REF, KEY_EXTENT_OWNER_REF, OID_EXTENT_TREE },
	{ KEY_TREE_BLOCK_REF, KEY_TREE_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_DATA_REF, KEY_EXTENT_DATA_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_BLOCK_REF, KEY_SHARED_BLOCK_REF, OID_EXTENT_TREE },
	{ KEY_SHARED_DATA_REF, KEY_SHARED_DATA_REF, OID_EXTENT_TREE },
	{ KEY_EXTENT_CSUM, KEY_EXTENT_CSUM, OID_CSUM_TREE },
	{ KEY_FREE_SPACE_INFO, KEY_FREE_SPACE_INFO, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_EXTENT, KEY_FREE_SPACE_EXTENT, OID_FREE_SPACE_TREE },
	{ KEY_FREE_SPACE_BITMAP, KEY_FREE_SPACE_BITMAP, OID_FREE_SPACE_TREE },
	{ KEY_DEV_EXTENT, KEY_DEV_EXTENT, OID_DEV_TREE },
	{ KEY_DEV_ITEM, KEY_DEV_ITEM, OID_CHUNK_TREE },
	{ KEY_CHUNK_ITEM, KEY_CHUNK_ITEM, OID_CHUNK_TREE },
};

static void judge_item(struct check *c, uint64_t tree, const struct node *leaf, uint32_t slot, const struct item *item)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct item_ctx ctx = c->items;
	enum check_code code = CHECK_ITEM_INVALID;
	int ret;

	ctx.owner = leaf->owner;
	ret = item_validate(&ctx, item, &what);
	for (size_t i = 0; !ret && i < sizeof(homes) / sizeof(homes[0]); i++) {
		if (item->key.type < homes[i].first || item->key.type > homes[i].last || tree == homes[i].tree)
			continue;
		ret = err_corrupt(&what, "key.type", "item of type %u, of which tree %" PRIu64 " has all",
				  item->key.type, homes[i].tree);
		code = CHECK_ITEM_TREE;
	}
	if (!ret)
		return;
	err_at_tree(&what, tree);
	err_at_logical(&what, leaf->bytenr);
	err_at_item(&what, slot, &item->key);
	check_tell(c, code, &what);
}

/* A leaf of a tree that is none of files; the root tree has files all the same, those of the v1 cache. */
static void read_other(struct reader *r, uint64_t tree, const struct node *leaf, bool full_backref)
{
	struct check *c = r->l->c;

	for (uint32_t i = 0; i < leaf->nritems; i++) {
		const struct item item = leaf_item(leaf, i);
		struct file_extent fe;

		judge_item(c, tree, leaf, i, &item);
		if (item.key.type == KEY_EXTENT_DATA && !file_extent_decode(&c->items, &item, &fe, NULL))
			check_file_extent(c, leaf, full_backref, &item, &fe, &r->hints);
	}
}

static void read_leaf(struct reader *r, struct check_block *b, struct below *ret)
{
	struct check *c = r->l->c;
	const struct node_ref ref = check_block_ref(c, b);
	struct node leaf;

	*ret = (struct below){ .lost = true };
	if (!check_read_block(c, &ref, ref.owner, r->buf)) {
		atomic_fetch_or(&b->state, CHECK_LOST);
		span_lost(&ret->span);
		return;
	}
	leaf = check_node(c, r->buf);
	ret->lost = false;
	ret->empty = !leaf.nritems;
	if (leaf.nritems) {
		ret->first = node_key(&leaf, 0);
		ret->last = node_key(&leaf, leaf.nritems - 1);
	}
	if (is_files(b))
		span_leaf(c, &leaf, b->place & CHECK_BLOCK_FULL, &r->hints, &ret->span);
	else
		read_other(r, ref.owner, &leaf, b->place & CHECK_BLOCK_FULL);
}

static void say(struct check *c, const struct check_block *b, const struct btrkit_key *key, uint64_t child,
		const char *message)
{
	check_say(c, CHECK_BLOCK_PARENT, &(struct check_place){ tree_of(c, b), child, key, "key" }, "%s", message);
}

/* The keys of a child against the pointers to it and to the next one. */
static void judge_keys(struct check *c, const struct check_block *b, const struct node *n, uint32_t slot,
		       const struct below *child)
{
	const struct btrkit_key key = node_key(n, slot);
	const uint64_t bytenr = le64_get(node_ptrs(n)[slot].blockptr);
	struct btrkit_key next;

	if (child->lost)
		return;
	if (child->empty) {
		say(c, b, &key, bytenr, "tree block is empty and not the root of a tree");
		return;
	}
	if (key_cmp(&child->first, &key))
		say(c, b, &key, bytenr, "first key of tree block is not what its parent says");
	if (slot + 1 == n->nritems)
		return;
	next = node_key(n, slot + 1);
	if (key_cmp(&child->last, &next) >= 0)
		say(c, b, &next, bytenr, "the highest key below a tree block is not below that of the next");
}

/* What is below a child of a node: known, or read now. */
static void take_child(struct reader *r, const struct node_ref *ref, struct below *ret)
{
	struct leaves *l = r->l;
	struct check_block *b = check_find_block(&l->c->tables, ref->bytenr, &r->block_hint);

	*ret = (struct below){ .lost = true };
	span_lost(&ret->span);
	if (!b || check_block_level(b) != ref->level || b->generation != ref->generation)
		return;
	if (b->below)
		*ret = *below_of(l, b);
	else if (!ref->level)
		read_leaf(r, b, ret);
}

static void prefetch(struct check *c, const struct node *n, uint32_t from)
{
	for (uint32_t i = from; i < n->nritems; i++)
		volume_prefetch(c->fs->volume, le64_get(node_ptrs(n)[i].blockptr), c->items.nodesize);
}

/* Puts together what is below a node. */
static void join_children(struct reader *r, const struct check_block *b, const struct node *n, struct below *all)
{
	struct check *c = r->l->c;
	const uint32_t from = check_first_slot(c, b, n, NULL);
	struct below child;

	if (n->level == 1)
		prefetch(c, n, from);
	for (uint32_t i = from; i < n->nritems; i++) {
		struct btrkit_key key;
		const struct node_ref ref = node_child(n, i, 0, &key);

		take_child(r, &ref, &child);
		judge_keys(c, b, n, i, &child);
		if (i == from) {
			*all = child;
			continue;
		}
		if (is_files(b))
			span_join(c, tree_of(c, b), &all->span, &child.span);
		if (!child.lost && !child.empty)
			all->last = child.last;
	}
	/* Of one that has lost its first children to a drop too. */
	all->first = node_key(n, 0);
	all->lost = all->empty = false;
}

static void read_node(struct reader *r, struct check_block *b, struct below *all)
{
	struct check *c = r->l->c;
	const struct node_ref ref = check_block_ref(c, b);
	uint8_t *buf = malloc(c->items.nodesize);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct node n;

	*all = (struct below){ .lost = true };
	span_lost(&all->span);
	if (!buf) {
		check_fail(c, err_nomem(&err), &err);
		return;
	}
	/* What there is to be told of it was told on the way down. */
	if (!(atomic_load(&b->state) & CHECK_LOST) && !node_read_alone(c->fs, &ref, buf, NULL)) {
		n = check_node(c, buf);
		join_children(r, b, &n, all);
	}
	free(buf);
}

/* A piece of work of a thread: a leaf that is shared, or a node and those of its leaves that are not. */
static void work(void *ctx, size_t i)
{
	struct leaves *l = ctx;
	struct check_block *b = check_block_at(&l->c->tables, l->work[i]);
	struct reader r = { .l = l, .block_hint = l->work[i], .buf = malloc(l->c->items.nodesize) };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct below *to = below_of(l, b);

	if (!r.buf)
		check_fail(l->c, err_nomem(&err), &err);
	else if (check_failed(l->c))
		span_lost(&to->span);
	else if (check_block_level(b))
		read_node(&r, b, to);
	else
		read_leaf(&r, b, to);
	free(r.buf);
	check_progress(l->c, 1);
}

/* Whether something is kept of what is below a block. */
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
	each(l->num_work, l->c->threads, work, l);
}

/* What is lost of leaves is lost for who adds up references. */
static void note_lost(struct leaves *l)
{
	struct check_tables *t = &l->c->tables;

	for (size_t i = 0; i < t->blocks.n; i++)
		l->c->blocks_lost |= !!(check_block_at(t, i)->state & CHECK_LOST);
}

static void end_trees(struct leaves *l)
{
	struct check *c = l->c;
	const struct check_root *roots = c->roots.at;

	for (size_t i = 0; i < c->roots.n && !check_failed(c); i++) {
		const struct tree_root *root = &roots[i].root;
		const struct check_block *b;

		if (!check_is_files(root->id) || root->id == OID_TREE_RELOC || roots[i].partly ||
		    !check_root_valid(c, &roots[i]))
			continue;
		b = check_find_block(&c->tables, root->bytenr, NULL);
		if (b && b->below && check_block_level(b) == root->level && b->state & CHECK_WHOLE)
			span_tree(c, &roots[i], &below_of(l, b)->span);
	}
}

int check_leaves(struct check *c)
{
	struct leaves l = { .c = c, .below = { .entry = sizeof(struct below), .fd = -1 } };

	if (!number_blocks(&l)) {
		for (unsigned level = 0; level < LEVELS_MAX && !check_failed(c); level++)
			read_level(&l, level);
		note_lost(&l);
		end_trees(&l);
	}
	check_table_release(&c->tables, &l.below);
	free(l.work);
	return c->failed;
}
