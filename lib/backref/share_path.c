// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/backref/share_path.h"

#include <stdlib.h>

#include "lib/backref/ancestors.h"
#include "lib/base/err.h"
#include "lib/format/items/extent.h"

struct block_refs {
	struct share_ctx *s;
	uint64_t bytenr;
	uint64_t path_parent; /* parent on the current path, known not to be shared */
	struct {
		uint64_t *at;
		size_t n, size;
	} parents; /* other parents */
	struct btrkit_error *err;
};

/* @return 1: another tree refers to the block */
static int visit_path_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct block_refs *b = ctx;

	(void)extent;
	if (ref->type == KEY_TREE_BLOCK_REF)
		return shared_block_ref_is_others(ref, b->s->root.id);
	if (ref->type != KEY_SHARED_BLOCK_REF || ref->parent == b->path_parent || ref->parent == b->bytenr)
		return 0;
	if (b->parents.n == b->parents.size) {
		size_t size = b->parents.size ? 2 * b->parents.size : 16;
		uint64_t *more = reallocarray(b->parents.at, size, sizeof(*more));

		if (!more)
			return err_nomem(b->err);
		b->parents.at = more;
		b->parents.size = size;
	}
	b->parents.at[b->parents.n++] = ref->parent;
	return 0;
}

/* Finds out whether the block at @level of the cursor's path is shared. Its ancestors on the path are not. */
static int path_block_shared(struct share_ctx *s, const struct cursor *c, unsigned level, bool *shared,
			     struct btrkit_error *err)
{
	struct block_refs b = { .s = s, .bytenr = c->nodes[level]->bytenr, .err = err };
	int ret;

	b.path_parent = level < c->root.level ? c->nodes[level + 1]->bytenr : 0;
	ret = extent_for_each_ref(&s->blocks, b.bytenr, visit_path_ref, &b, err);
	*shared = ret == 1;
	for (size_t i = 0; !ret && !*shared && i < b.parents.n; i++)
		ret = block_reached_from_elsewhere(&s->blocks, &s->root, b.parents.at[i], shared, err);
	free(b.parents.at);
	return ret < 0 ? ret : 0;
}

/* Goes from the root down, because everything below a shared block is shared. */
int share_path(struct share_ctx *s, struct share_path *path, const struct cursor *c, bool *shared,
	       struct btrkit_error *err)
{
	bool verdict = false;

	for (unsigned level = c->root.level + 1; level-- > 0;) {
		int ret;

		if (path->levels[level].bytenr != c->nodes[level]->bytenr) {
			if (!verdict) {
				ret = path_block_shared(s, c, level, &verdict, err);
				if (ret)
					return ret;
				s->counts.blocks_checked++;
			} else {
				s->counts.saved_by_path++;
			}
			path->levels[level].bytenr = c->nodes[level]->bytenr;
			path->levels[level].shared = verdict;
			/* Blocks below belong to a different path. */
			for (unsigned below = 0; below < level; below++)
				path->levels[below].bytenr = 0;
		} else {
			s->counts.saved_by_path++;
		}
		verdict = path->levels[level].shared;
	}
	*shared = verdict;
	return 0;
}

int share_leaf(struct share_ctx *s, const struct cursor *c, bool *shared, struct btrkit_error *err)
{
	/*
	 * A tree that was never part of a snapshot shares nothing. The generation of the leaf cannot be used to decide
	 * more cases, because relocation changes it while blocks stay shared.
	 */
	if (!s->last_snapshot) {
		*shared = false;
		return 0;
	}
	return share_path(s, &s->path, c, shared, err);
}
