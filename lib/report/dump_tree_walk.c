// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/dump_tree.h"

/*
 * A walk holds the path from the top to the block where it stands. Levels fall from parent to child (node_get() sees
 * to that), so the path is bounded and no pointer can lead in a circle.
 */
struct walk {
	struct dump *d;
	uint64_t owner;
	uint8_t top, at;
	struct node *nodes[LEVELS_MAX];
	uint32_t slots[LEVELS_MAX];	/* of the child where the walk goes next */
};

/* Steps down to the child in the slot where the walk stands. */
static int step_down(struct walk *w, struct btrkit_error *err)
{
	const struct node *parent = w->nodes[w->at];
	struct btrkit_key key;
	struct node_ref ref = node_child(parent, w->slots[w->at], w->owner, &key);
	int ret;

	ret = node_get(w->d->fs, &ref, &w->nodes[w->at - 1], err);
	if (ret)
		return ret;
	w->at--;
	w->slots[w->at] = 0;
	return 0;
}

/* Steps up until there is a child to go to. @return 0; 1: the walk is over and holds only the top block */
static int step_up(struct walk *w, uint8_t lowest)
{
	while (w->at <= lowest || w->slots[w->at] >= w->nodes[w->at]->nritems) {
		if (w->at == w->top)
			return 1;
		node_put(w->d->fs, w->nodes[w->at]);
		w->at++;
		w->slots[w->at]++;
	}
	return 0;
}

static void release_path(struct walk *w)
{
	while (w->at < w->top)
		node_put(w->d->fs, w->nodes[w->at++]);
}

/* Every block from below the top down to level @lowest in depth-first order; prints those of levels up to @highest. */
static int walk_levels(struct walk *w, uint8_t lowest, uint8_t highest, struct btrkit_error *err)
{
	int ret = 0;

	w->slots[w->top] = 0;
	while (!ret && !step_up(w, lowest)) {
		if (w->at == lowest + 1 && !w->slots[w->at])
			node_prefetch_children(w->d->fs, w->nodes[w->at], 0, w->nodes[w->at]->nritems);
		ret = step_down(w, err);
		if (ret)
			break;
		if (w->at <= highest)
			dump_block(w->d, w->nodes[w->at]);
		ret = emit_failed(&w->d->e);
	}
	release_path(w);
	return ret;
}

static int walk_below(struct walk *w, enum dump_order order, struct btrkit_error *err)
{
	int ret = 0;

	if (order == DUMP_ALONE || !w->top)
		return 0;
	if (order == DUMP_LEAVES)
		return walk_levels(w, 0, 0, err);
	if (w->d->depth_first)
		return walk_levels(w, 0, LEVELS_MAX, err);
	for (uint8_t level = w->top; !ret && level-- > 0;)
		ret = walk_levels(w, level, level, err);
	return ret;
}

int dump_blocks(struct dump *d, const struct node_ref *ref, enum dump_order order, struct btrkit_error *err)
{
	struct walk w = { .d = d };
	struct node *top;
	int ret;

	ret = node_get(d->fs, ref, &top, err);
	if (ret)
		return ret;
	w.owner = ref->owner ? ref->owner : top->owner;
	w.top = top->level;
	w.at = top->level;
	w.nodes[top->level] = top;
	if (order != DUMP_LEAVES || !top->level)
		dump_block(d, top);
	ret = walk_below(&w, order, err);
	node_put(d->fs, top);
	return ret ? ret : emit_failed(&d->e);
}
