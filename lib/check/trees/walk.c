// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks the trees from the roots to the level above the leaves, level by level. Each node is read once, after all nodes
 * that may point to it. Pointers are compared with the extent tree, and their references are subtracted from the sums
 * of their targets. Blocks that the extent tree lacks are added to the table, so that they are read as well.
 */
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/hash.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/read.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/check/volume/groups.h"
#include "lib/io/buffer.h"
#include "lib/sweep/drop.h"

#include <inttypes.h>
#include <stdlib.h>

/* A block that is not in the table yet, hashed by address. */
struct stray {
	uint64_t bytenr;
	size_t number; /* index in strays */
	UT_hash_handle hh;
};

struct walk {
	struct check *c;
	struct array strays; /* struct check_block, while a level is walked */
	struct stray *by_address;
	struct array snapshots; /* uint64_t: for each node, the lowest last_snapshot of the roots that reach it */
	size_t block_hint, group_hint;
	uint8_t *buf;	/* the node being read */
	uint8_t *child; /* a child that must be read now to see whether relocation made it */
};

/* A pointer to a block. */
struct edge {
	uint64_t bytenr, generation;
	uint8_t level;
	unsigned state; /* CHECK_* flags to pass on to the block */
	uint32_t root;
	uint64_t last_snapshot;
	struct extent_ref ref;
	uint64_t tree;		      /* for findings: the tree that has the pointer */
	const struct btrkit_key *key; /* NULL: the pointer is in a root item */
};

struct extent_ref check_root_ref(const struct tree_root *root)
{
	/* The root of a relocation tree has no parent, and refers to itself. */
	if (root->id == OID_TREE_RELOC)
		return (struct extent_ref){ .type = KEY_SHARED_BLOCK_REF, .parent = root->bytenr, .count = 1 };
	return (struct extent_ref){ .type = KEY_TREE_BLOCK_REF, .root = root->id, .count = 1 };
}

struct extent_ref check_child_ref(const struct node *n, bool full_backref)
{
	if (full_backref)
		return (struct extent_ref){ .type = KEY_SHARED_BLOCK_REF, .parent = n->bytenr, .count = 1 };
	return (struct extent_ref){ .type = KEY_TREE_BLOCK_REF, .root = n->owner, .count = 1 };
}

struct node_ref check_block_ref(const struct check *c, const struct check_block *b)
{
	return (struct node_ref){ check_block_bytenr(b), b->generation, check_reached_by(c, b)->root.id,
				  (uint8_t)check_block_level(b), NULL };
}

static bool is_on_drop_path(const struct check_block *b)
{
	return (atomic_load(&b->state) & (CHECK_DROPPED | CHECK_WHOLE)) == CHECK_DROPPED;
}

uint32_t check_first_slot(const struct check *c, const struct check_block *b, const struct node *n, bool *on)
{
	if (on)
		*on = false;
	return is_on_drop_path(b) ? sweep_drop_first(&check_reached_by(c, b)->drop, n, on) : 0;
}

static void report_pointer(struct walk *w, enum check_code code, const struct edge *e, const char *field,
			   const char *message)
{
	check_report_at(w->c, code, &(struct check_location){ e->tree, e->bytenr, e->key, field }, "%s", message);
}

/* Finds the block in the table, or among the strays. */
static struct check_block *find(struct walk *w, const struct edge *e)
{
	struct check_block *b = check_find_block(&w->c->tables, e->bytenr, &w->block_hint);
	struct stray *stray = NULL;

	if (b)
		return b;
	HASH_FIND(hh, w->by_address, &e->bytenr, sizeof(e->bytenr), stray);
	return stray ? (struct check_block *)w->strays.at + stray->number : NULL;
}

static struct check_block *add_stray(struct walk *w, const struct edge *e)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct stray *stray = malloc(sizeof(*stray));
	struct check_block *b = stray ? array_add(&w->strays, sizeof(*b), NULL) : NULL;

	/* If there is no chunk at the address, the block is reported as unreadable instead. */
	if (!w->c->extents_lost && (check_group_of(w->c, e->bytenr, &w->group_hint) || w->c->chunks_lost))
		report_pointer(w, CHECK_EXTENT_MISSING, e, "blockptr", "tree block is missing from the extent tree");
	if (b) {
		*b = (struct check_block){ .tagged = e->bytenr | e->level | CHECK_BLOCK_STRAY,
					   .generation = e->generation };
		*stray = (struct stray){ .bytenr = e->bytenr, .number = w->strays.n - 1 };
		HASH_ADD(hh, w->by_address, bytenr, sizeof(stray->bytenr), stray);
	}
	if (b && stray->hh.tbl)
		return b;
	free(stray);
	check_fail(w->c, err_nomem(&err), &err);
	return NULL;
}

static void forget_strays(struct walk *w)
{
	struct stray *stray, *next;

	HASH_ITER(hh, w->by_address, stray, next)
	{
		HASH_DEL(w->by_address, stray);
		free(stray);
	}
	w->strays.n = 0;
}

/* Compares the extent tree's record of a block with the first pointer to it. The pointer is taken to be right. */
static void check_first(struct walk *w, const struct edge *e, struct check_block *b)
{
	const uint64_t wanted = e->tree == OID_CHUNK_TREE ? BG_SYSTEM : BG_METADATA;
	const struct check_group *g = check_group_of(w->c, e->bytenr, &w->group_hint);
	const bool doubt = b->tagged & (CHECK_BLOCK_DOUBT | CHECK_BLOCK_STRAY);

	if (!doubt && check_block_level(b) != e->level)
		report_pointer(w, CHECK_EXTENT_BLOCK, e, "level",
			       "level of the tree block differs from the extent tree");
	if (!doubt && b->generation != e->generation)
		report_pointer(w, CHECK_EXTENT_BLOCK, e, "generation",
			       "generation of the tree block differs from the extent tree");
	if (b->tagged & CHECK_BLOCK_FULL && !(e->state & CHECK_FILES))
		report_pointer(w, CHECK_EXTENT_BLOCK, e, "flags",
			       "tree block has full backrefs, but is not in a file tree");
	if (g && !(g->flags & wanted))
		report_pointer(w, CHECK_EXTENT_PLACE, e, "flags", "tree block is in a block group of another type");
	b->tagged = (b->tagged & ~(uint64_t)CHECK_BLOCK_LEVEL) | e->level;
	b->generation = e->generation;
}

/* Checks a further pointer to a block. @return false: do not follow it */
static bool check_again(struct walk *w, const struct edge *e, struct check_block *b)
{
	const unsigned state = atomic_load(&b->state);

	if (check_block_level(b) != e->level || b->generation != e->generation) {
		report_pointer(w, CHECK_BLOCK_CYCLE, e, "blockptr",
			       "tree block is referenced with different levels or generations");
		return false;
	}
	if (!(state & e->state & CHECK_FILES)) {
		report_pointer(w, CHECK_BLOCK_CYCLE, e, "blockptr",
			       "tree block is referenced twice, but is not in a file tree");
		return false;
	}
	return true;
}

/* Whether the block's own header says that relocation made it. Copies of its parent do not pass that on. */
static bool is_of_relocation(struct walk *w, const struct edge *e)
{
	const struct node_ref ref = { e->bytenr, e->generation, e->tree, e->level, NULL };

	return !check_reread(w->c, &ref, w->child) || check_node(w->c, w->child).flags & HEADER_FLAG_RELOC;
}

/* Linux treats a block that is newer than the last snapshot as unshared, unless relocation made it. */
static void check_shared(struct walk *w, const struct edge *e, const struct check_block *b)
{
	if (!(b->tagged & CHECK_BLOCK_MANY) || e->generation <= e->last_snapshot || e->state & CHECK_RELOC ||
	    e->tree == OID_TREE_RELOC || is_of_relocation(w, e))
		return;
	check_report_at(w->c, CHECK_EXTENT_SNAPSHOT,
			&(struct check_location){ e->tree, e->bytenr, e->key, "last_snapshot" },
			"generation %" PRIu64 " of a shared tree block is newer than last snapshot %" PRIu64
			" of the tree",
			e->generation, e->last_snapshot);
}

/* Records the lowest last_snapshot of a node, which its children need. */
static void note_snapshot(struct walk *w, const struct edge *e, struct check_block *b)
{
	uint64_t *at = w->snapshots.at;

	if (!e->level)
		return;
	if (!b->below) {
		at = check_list_add(w->c, &w->snapshots, sizeof(*at));
		if (!at)
			return;
		*at = e->last_snapshot;
		b->below = (uint32_t)w->snapshots.n;
	} else if (e->last_snapshot < at[b->below - 1]) {
		at[b->below - 1] = e->last_snapshot;
	}
}

static void reach(struct walk *w, const struct edge *e)
{
	struct check_block *b = find(w, e);
	unsigned state;

	if (!b)
		b = add_stray(w, e);
	if (!b)
		return;
	b->sum -= check_ref_hash(w->c, &e->ref, e->bytenr);
	state = b->state;
	if (!(state & CHECK_REACHED)) {
		check_first(w, e, b);
	} else if (!check_again(w, e, b)) {
		w->c->blocks_lost = true;
		return;
	}
	check_shared(w, e, b);
	note_snapshot(w, e, b);
	/* A root that reaches the whole block takes precedence over one that reaches a part. */
	if (!(state & CHECK_REACHED) || (e->state & CHECK_WHOLE && !(state & CHECK_WHOLE)))
		state = (state & ((1u << CHECK_STATE_BITS) - 1)) | e->root << CHECK_STATE_BITS;
	else
		state |= CHECK_AGAIN;
	b->state = state | CHECK_REACHED | e->state;
}

void check_relocated(struct check *c, const struct check_block *b, const struct node *n)
{
	if (!(n->flags & HEADER_FLAG_RELOC) || b->tagged & (CHECK_BLOCK_FULL | CHECK_BLOCK_STRAY | CHECK_BLOCK_DOUBT))
		return;
	check_report_at(c, CHECK_BLOCK_FLAGS, &(struct check_location){ n->owner, n->bytenr, NULL, "flags" },
			"tree block has the RELOC flag, but no full backrefs");
}

static void walk_children(struct walk *w, const struct check_block *b, const struct node *n)
{
	const struct check_root *root = check_reached_by(w->c, b);
	struct btrkit_key key;
	struct edge e = {
		.level = (uint8_t)(n->level - 1),
		.state = b->state & (CHECK_FILES | CHECK_RELOC),
		.root = b->state >> CHECK_STATE_BITS,
		.last_snapshot = ((const uint64_t *)w->snapshots.at)[b->below - 1],
		.ref = check_child_ref(n, b->tagged & CHECK_BLOCK_FULL),
		.tree = root->root.id,
		.key = &key,
	};
	const unsigned state = e.state;
	bool on;

	check_relocated(w->c, b, n);
	if (n->flags & HEADER_FLAG_RELOC)
		e.state |= CHECK_RELOC;
	for (uint32_t i = check_first_slot(w->c, b, n, &on); i < n->nritems; i++, on = false) {
		const struct node_ref ref = node_child(n, i, 0, &key);

		e.bytenr = ref.bytenr;
		e.generation = ref.generation;
		e.state = state | (on ? CHECK_DROPPED : CHECK_WHOLE);
		if (!(e.bytenr & ~CHECK_ADDRESS))
			reach(w, &e);
	}
}

static void walk_node(struct walk *w, size_t i)
{
	struct check_block *b = check_block_at(&w->c->tables, i);
	const struct node_ref ref = check_block_ref(w->c, b);
	struct node n;

	if (!b->below)
		return;
	if (!check_read_block(w->c, &ref, w->buf)) {
		atomic_fetch_or(&b->state, CHECK_LOST);
		w->c->blocks_lost = true;
		return;
	}
	n = check_node(w->c, w->buf);
	walk_children(w, b, &n);
	w->c->result.blocks++;
}

static int compare_blocks(const void *x, const void *y)
{
	const struct check_block *a = x, *b = y;

	return check_block_bytenr(a) < check_block_bytenr(b) ? -1 : check_block_bytenr(a) > check_block_bytenr(b);
}

static void merge_strays(struct walk *w)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret;

	if (!w->strays.n)
		return;
	qsort(w->strays.at, w->strays.n, sizeof(struct check_block), compare_blocks);
	ret = check_table_merge(&w->c->tables, &w->c->tables.blocks, w->strays.at, w->strays.n, &err);
	if (ret)
		check_fail(w->c, ret, &err);
	forget_strays(w);
}

static void reach_roots(struct walk *w)
{
	const struct check_root *roots = w->c->roots.at;

	for (size_t i = 0; i < w->c->roots.n; i++) {
		const struct check_root *r = &roots[i];
		const bool cut = sweep_drop_cuts_root(&r->drop, r->root.level);

		if (!check_root_valid(w->c, r))
			continue;
		reach(w, &(struct edge){ .bytenr = r->root.bytenr,
					 .generation = r->root.generation,
					 .level = r->root.level,
					 .state = CHECK_ROOT | (cut ? CHECK_DROPPED : CHECK_WHOLE) |
						  (sweep_has_files(r->root.id) ? CHECK_FILES : 0) |
						  (r->root.id == OID_TREE_RELOC ? CHECK_RELOC : 0),
					 .root = (uint32_t)i,
					 .last_snapshot = r->item.last_snapshot,
					 .ref = check_root_ref(&r->root),
					 .tree = r->root.id });
	}
}

static void walk_levels(struct walk *w)
{
	struct check_table *blocks = &w->c->tables.blocks;

	reach_roots(w);
	merge_strays(w);
	for (unsigned level = LEVELS_MAX - 1; level > 0 && !check_failed(w->c); level--) {
		for (size_t i = 0; i < blocks->n && !w->c->failed; i++) {
			const struct check_block *b = check_block_at(&w->c->tables, i);

			if (check_block_level(b) == level && b->state & CHECK_REACHED)
				walk_node(w, i);
		}
		merge_strays(w);
	}
}

int check_walk(struct check *c)
{
	struct walk w = { .c = c };
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	w.buf = io_buffer(c->items.nodesize);
	w.child = io_buffer(c->items.nodesize);
	c->due += c->tables.blocks.n;
	if (w.buf && w.child)
		walk_levels(&w);
	else
		check_fail(c, err_nomem(&err), &err);
	/* The numbers were indexes into the list of snapshots, which is freed. */
	for (size_t i = 0; i < c->tables.blocks.n; i++)
		check_block_at(&c->tables, i)->below = 0;
	forget_strays(&w);
	free(w.strays.at);
	free(w.snapshots.at);
	free(w.buf);
	free(w.child);
	return c->failed;
}
