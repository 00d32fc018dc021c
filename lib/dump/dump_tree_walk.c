// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_tree_walk.h"

#include "lib/base/err.h"
#include "lib/dump/dump_tree_block.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_run.h"

/*
 * A walk holds the path from the top block to the current block. Levels decrease from parent to child (ensured by
 * node_get()), so the path is bounded and there can be no cycles. Keys below a pointer must be lower than the next
 * pointer's key, so no block is visited twice in a tree.
 */
struct walk {
	struct dump_run *run;
	const struct dump_what *what;
	uint64_t owner;
	uint8_t top, at;
	uint8_t lowest, highest;	/* levels shown by the current pass */
	uint8_t first_level, last_level;	/* all levels that are shown, from the top down */
	struct node *nodes[LEVELS_MAX];
	uint32_t slots[LEVELS_MAX];	/* next child to visit */
	bool bounded[LEVELS_MAX];	/* keys below the node must be lower than bounds[] */
	struct btrkit_key bounds[LEVELS_MAX];
	bool dropping[LEVELS_MAX];	/* the node is on the path to the progress of the deletion */
	bool dropped[LEVELS_MAX];	/* the node has been deleted */
};

/* Range of keys below child @i of the current node. *end NULL: up to the last possible key */
struct span {
	struct btrkit_key min, limit;
	const struct btrkit_key *end;
};

static void span_of(const struct walk *w, uint32_t i, struct span *s)
{
	const struct node *n = w->nodes[w->at];

	s->min = node_key(n, i);
	s->end = w->bounded[w->at] ? &w->bounds[w->at] : NULL;
	if (i + 1 == n->nritems)
		return;
	s->limit = node_key(n, i + 1);
	if (!s->end || key_cmp(&s->limit, s->end) < 0)
		s->end = &s->limit;
}

/* The first child that was not freed, if the deletion has reached this node. */
static uint32_t kept_from(const struct walk *w)
{
	const struct node *n = w->nodes[w->at];
	bool exact;
	uint32_t i;

	if (!w->dropping[w->at])
		return 0;
	i = node_lower_bound(n, &w->what->drop_key, &exact);
	return n->level > w->what->drop_level && !exact && i ? i - 1 : i;
}

static bool is_shown(const struct walk *w, const struct node_ref *ref)
{
	return ref->level >= w->first_level && ref->level <= w->last_level &&
	       dump_blocks_have(w->what->blocks, ref->bytenr, ref->generation, ref->level);
}

/* Whether the current child was freed. There may be a different block now, which is not damage. */
static bool is_dropped(const struct walk *w)
{
	return w->dropped[w->at] || w->slots[w->at] < kept_from(w);
}

/* Whether the block was handled when its own level was shown. */
static bool was_met(const struct walk *w, const struct node_ref *ref)
{
	return ref->level > w->highest && is_shown(w, ref);
}

/* Whether a child has to be visited. */
static bool is_wanted(const struct walk *w, const struct node_ref *ref, const struct span *s)
{
	const struct dump_blocks *b = w->what->blocks;

	/* Blocks are never newer than the pointers to them. */
	if (b && ref->generation < b->min_generation)
		return false;
	if (ref->level == w->lowest && !is_shown(w, ref))
		return false;
	return !w->what->pick || dump_pick_overlaps(w->what->pick, &s->min, s->end);
}

/* Prefetches the children of the node that will be read. */
static void prefetch(const struct walk *w)
{
	const struct node *n = w->nodes[w->at];
	uint32_t from = w->slots[w->at];
	struct btrkit_key key;
	struct span s;

	for (uint32_t i = from; i < n->nritems; i++) {
		const struct node_ref ref = node_child(n, i, w->owner, &key);

		span_of(w, i, &s);
		if (is_wanted(w, &ref, &s))
			continue;
		node_prefetch_children(w->run->fs, n, from, i);
		from = i + 1;
	}
	node_prefetch_children(w->run->fs, n, from, n->nritems);
}

/* Enters a node. */
static void arrive(struct walk *w)
{
	w->slots[w->at] = 0;
	if (w->at == w->lowest + 1)
		prefetch(w);
}

/* Goes up until there is a next child. @return 0; 1: the walk is finished, and only holds the top block */
static int step_up(struct walk *w)
{
	while (w->at <= w->lowest || w->slots[w->at] >= w->nodes[w->at]->nritems) {
		if (w->at == w->top)
			return 1;
		node_put(w->run->fs, w->nodes[w->at]);
		w->at++;
		w->slots[w->at]++;
	}
	return 0;
}

static void release_path(struct walk *w)
{
	while (w->at < w->top)
		node_put(w->run->fs, w->nodes[w->at++]);
}

/* Reports a block that cannot be read. */
static int tell(struct walk *w, const struct node_ref *ref, int ret, struct btrkit_error *what,
		struct btrkit_error *err)
{
	struct dump *d;
	int r;

	if (!dump_is_damage(ret))
		return err_nomem(err);
	if (was_met(w, ref))
		return 0;
	if (w->owner)
		err_at_tree(what, w->owner);
	r = dump_run_text(w->run, &d, err);
	if (!r)
		dump_damaged_block(d, ref, ret, what);
	return r;
}

static int show(struct walk *w, const struct node *n, struct btrkit_error *err)
{
	struct dump *d;
	int ret = dump_run_text(w->run, &d, err);

	if (ret)
		return ret;
	d->tree = w->owner;
	dump_block(d, n);
	return 0;
}

/* Report that the current pointer has keys beyond its range. All pointers after it do too, so skip them. */
static int tell_pointer(struct walk *w, const struct node_ref *ref, struct btrkit_error *err)
{
	struct dump *d;
	int ret = 0;

	if (!was_met(w, ref)) {
		ret = dump_run_text(w->run, &d, err);
		if (!ret)
			dump_damaged_pointer(d, w->nodes[w->at], w->slots[w->at], w->owner);
	}
	w->slots[w->at] = w->nodes[w->at]->nritems;
	return ret;
}

/* Descends to the current child, or skips it. */
static int step_down(struct walk *w, const struct node_ref *ref, const struct span *s, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	const bool first = w->slots[w->at] == kept_from(w), dropped = is_dropped(w);
	struct node *child;
	int ret = node_get(w->run->fs, ref, &child, &what);

	if (ret) {
		w->slots[w->at]++;
		return dropped && dump_is_damage(ret) ? 0 : tell(w, ref, ret, &what, err);
	}
	w->at--;
	w->nodes[w->at] = child;
	w->bounded[w->at] = s->end;
	if (s->end)
		w->bounds[w->at] = *s->end;
	w->dropping[w->at] = w->dropping[w->at + 1] && first && w->at && w->at >= w->what->drop_level;
	w->dropped[w->at] = dropped;
	arrive(w);
	return w->at <= w->highest && is_shown(w, ref) ? show(w, child, err) : 0;
}

/* Handles the current child. */
static int visit(struct walk *w, struct btrkit_error *err)
{
	struct btrkit_key key;
	const struct node_ref ref = node_child(w->nodes[w->at], w->slots[w->at], w->owner, &key);
	struct span s;
	bool dropped;

	span_of(w, w->slots[w->at], &s);
	if (s.end && key_cmp(&s.min, s.end) >= 0)
		return tell_pointer(w, &ref, err);
	if (is_wanted(w, &ref, &s)) {
		if (ref.level > w->lowest)
			return step_down(w, &ref, &s, err);
		dropped = is_dropped(w);
		w->slots[w->at]++;
		return dump_run_block(w->run, &ref, dropped, err);
	}
	w->slots[w->at]++;
	return 0;
}

/*
 * Visits all blocks from below the top down to level @lowest in depth-first order; shows those with levels up to
 * @highest.
 */
static int walk_levels(struct walk *w, uint8_t lowest, uint8_t highest, struct btrkit_error *err)
{
	int ret = 0;

	w->lowest = lowest;
	w->highest = highest;
	arrive(w);
	while (!ret && !step_up(w))
		ret = visit(w, err);
	release_path(w);
	return ret;
}

static int walk_below(struct walk *w, struct btrkit_error *err)
{
	uint8_t level = w->last_level < w->top ? (uint8_t)(w->last_level + 1) : w->top;
	int ret = 0;

	if (w->what->order == DUMP_ONE_BLOCK || w->first_level >= w->top)
		return 0;
	if (w->what->order == DUMP_DEPTH_FIRST)
		return walk_levels(w, w->first_level, LEVELS_MAX, err);
	while (!ret && level-- > w->first_level)
		ret = walk_levels(w, level, level, err);
	return ret;
}

static void choose_levels(struct walk *w)
{
	const struct dump_what *what = w->what;

	w->first_level = what->blocks ? what->blocks->min_level : 0;
	w->last_level = what->blocks && what->blocks->max_level < LEVELS_MAX ? what->blocks->max_level : LEVELS_MAX - 1;
	/* Items are only in leaves. */
	if (what->order == DUMP_LEAVES || what->pick)
		w->last_level = 0;
}

int dump_tree_walk(struct dump_run *run, const struct node_ref *ref, const struct dump_what *what,
		   struct btrkit_error *err)
{
	struct walk w = { .run = run, .what = what, .owner = ref->owner, .highest = LEVELS_MAX };
	struct btrkit_error lost = BTRKIT_ERROR_INIT;
	struct node_ref top_ref = *ref;
	struct node *top;
	int ret;

	dump_run_pick(run, what->pick);
	choose_levels(&w);
	ret = node_get(run->fs, ref, &top, &lost);
	if (ret)
		return tell(&w, ref, ret, &lost, err);
	top_ref.generation = top->generation;
	top_ref.level = top->level;
	w.owner = ref->owner ? ref->owner : top->owner;
	w.top = top->level;
	w.at = top->level;
	w.nodes[top->level] = top;
	w.dropping[top->level] = what->dropping && top->level && top->level >= what->drop_level;
	if (is_shown(&w, &top_ref))
		ret = show(&w, top, err);
	if (!ret)
		ret = walk_below(&w, err);
	node_put(run->fs, top);
	return ret;
}
