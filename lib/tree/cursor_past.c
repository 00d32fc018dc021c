// SPDX-License-Identifier: LGPL-2.1-or-later
/* Skips what cannot be read. */
#include "lib/tree/cursor.h"

#include "lib/base/err.h"

/* The level of the last block on the path that was entered; the block in its slot was not. */
static unsigned deepest(const struct cursor *c)
{
	unsigned level = c->root.level;

	while (level) {
		const uint64_t child = le64_get(node_ptrs(c->nodes[level])[c->slots[level]].blockptr);

		if (!c->nodes[level - 1] || c->nodes[level - 1]->bytenr != child)
			break;
		level--;
	}
	return level;
}

/* The first key after all that is below the block not entered. @return 0; 1: there is none */
static int key_behind(const struct cursor *c, struct btrkit_key *ret)
{
	if (!c->nodes[c->root.level])
		return 1;
	for (unsigned level = deepest(c); level && level <= c->root.level; level++) {
		const struct node *n = c->nodes[level];

		if (c->slots[level] + 1 >= n->nritems)
			continue;
		*ret = node_key(n, c->slots[level] + 1);
		return 0;
	}
	return 1;
}

int cursor_lost_keys(const struct cursor *c, struct btrkit_key *first, struct btrkit_key *end)
{
	unsigned level;

	*first = KEY(0, 0, 0);
	*end = KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX);
	if (!c->nodes[c->root.level])
		return 0;
	level = deepest(c);
	if (!level)
		return 1;
	*first = node_key(c->nodes[level], c->slots[level]);
	(void)key_behind(c, end);
	return 0;
}

int cursor_lost_block(const struct cursor *c, uint64_t *bytenr, unsigned *level)
{
	unsigned above;

	if (!c->nodes[c->root.level])
		return 1;
	above = deepest(c);
	if (!above)
		return 1;
	*bytenr = le64_get(node_ptrs(c->nodes[above])[c->slots[above]].blockptr);
	*level = above - 1;
	return 0;
}

static int next_around(struct cursor *c, struct btrkit_key *at, bool first, cursor_lost_fn lost, void *ctx,
		       struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = first ? cursor_seek(c, at, &what) : cursor_next(c, &what);

	while (ret < 0 && ret != -ENOMEM) {
		struct btrkit_key next;
		int r = lost ? lost(ctx, ret, &what) : 0;

		if (r)
			return r;
		/* Keys must increase, otherwise a tree with a loop would never end. */
		if (key_behind(c, &next) || key_cmp(&next, at) <= 0)
			return 1;
		*at = next;
		what = (struct btrkit_error)BTRKIT_ERROR_INIT;
		ret = cursor_seek(c, at, &what);
	}
	if (ret < 0)
		return err_nomem(err);
	if (!ret)
		*at = c->item.key;
	return ret;
}

int cursor_next_around(struct cursor *c, struct btrkit_key *at, bool first, cursor_lost_fn lost, void *ctx,
		       struct btrkit_error *err)
{
	int ret;

	if (first || !c->nodes[0] || c->slots[0] + 1 >= c->nodes[0]->nritems)
		return next_around(c, at, first, lost, ctx, err);
	/* The next item is in the same leaf and cannot fail. Clearing an error would take longer than that. */
	ret = cursor_next(c, err);
	*at = c->item.key;
	return ret;
}
