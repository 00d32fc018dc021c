// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the trees that reach a tree block, by following the references of blocks upwards. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/backref/ancestors.h"
#include "lib/backref/references.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"

/* A tree block whose trees are known. */
struct known_block {
	uint64_t bytenr;
	UT_hash_handle hh;
	uint64_t *trees; /* ascending */
	size_t n, size;
};

void references_forget_trees(struct references *r)
{
	struct known_block *b, *next;

	HASH_ITER(hh, r->known, b, next)
	{
		HASH_DEL(r->known, b);
		free(b->trees);
		free(b);
	}
	r->num_known = 0;
}

static int add_tree(struct known_block *b, uint64_t tree, struct btrkit_error *err)
{
	size_t i = b->n;

	while (i && b->trees[i - 1] > tree)
		i--;
	if (i && b->trees[i - 1] == tree)
		return 0;
	if (b->n == b->size) {
		size_t size = b->size ? 2 * b->size : 4;
		uint64_t *more = reallocarray(b->trees, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		b->trees = more;
		b->size = size;
	}
	for (size_t k = b->n++; k > i; k--)
		b->trees[k] = b->trees[k - 1];
	b->trees[i] = tree;
	return 0;
}

/* References to a block, from its extent item. */
struct block_refs {
	unsigned level;
	struct extent_ref *at;
	size_t n, size;
	struct btrkit_error *err;
};

static int collect_block_ref(void *ctx, const struct extent_item *extent, const struct extent_ref *ref)
{
	struct block_refs *refs = ctx;

	refs->level = extent->level;
	if (ref->type != KEY_TREE_BLOCK_REF && ref->type != KEY_SHARED_BLOCK_REF)
		return 0;
	if (refs->n == refs->size) {
		size_t size = refs->size ? 2 * refs->size : 4;
		struct extent_ref *more = reallocarray(refs->at, size, sizeof(*more));

		if (!more)
			return err_nomem(refs->err);
		refs->at = more;
		refs->size = size;
	}
	refs->at[refs->n++] = *ref;
	return 0;
}

/*
 * Finds the parent of block @bytenr in a tree that refers to it, by the first key of the block.
 * @return 0; 1: the block is the root, or there is no such tree; <0
 */
static int parent_in_tree(struct references *r, uint64_t bytenr, unsigned level, uint64_t tree, uint64_t *parent,
			  bool *is_root, struct btrkit_error *err)
{
	struct node_ref ref = { bytenr, NODE_ANY, 0, (uint8_t)level, NULL };
	struct tree_root root;
	struct btrkit_key key;
	struct node *node;
	struct cursor c;
	int ret;

	*is_root = false;
	ret = fs_try_tree(r->fs, tree, &root, NULL, err);
	if (ret)
		return ret;
	if (root.bytenr == bytenr) {
		*is_root = true;
		return 1;
	}
	if (level >= root.level)
		return 1;
	if (bytenr == r->lost_block) {
		key = r->lost_key;
	} else {
		ret = node_get(r->fs, &ref, &node, err);
		if (ret)
			return ret;
		key = node->nritems ? node_key(node, 0) : KEY(0, 0, 0);
		node_put(r->fs, node);
	}
	cursor_init(&c, r->fs, &root);
	ret = cursor_descend(&c, &key, level + 1, err);
	if (!ret)
		*parent = c.nodes[level + 1]->bytenr;
	cursor_release(&c);
	return ret;
}

static int trees_of(struct references *r, uint64_t bytenr, unsigned level, const struct known_block **ret,
		    struct btrkit_error *err);

/* Adds the trees that reach a block through one of its references. */
static int add_trees(struct references *r, struct known_block *b, unsigned level, const struct extent_ref *ref,
		     struct btrkit_error *err)
{
	const struct known_block *above;
	uint64_t parent = ref->parent;
	bool is_root;
	int ret = 0;

	if (ref->type == KEY_TREE_BLOCK_REF) {
		ret = parent_in_tree(r, b->bytenr, level, ref->root, &parent, &is_root, err);
		if (ret)
			return ret < 0 ? ret : is_root ? add_tree(b, ref->root, err) : 0;
	} else if (parent == b->bytenr) {
		/* The root of a relocation tree, which has no files of its own. */
		return 0;
	}
	ret = trees_of(r, parent, level + 1, &above, err);
	for (size_t i = 0; !ret && i < above->n; i++)
		ret = add_tree(b, above->trees[i], err);
	return ret;
}

/* Finds the trees that reach a block. The level increases with each recursion, so the depth is bounded. */
static int trees_of(struct references *r, uint64_t bytenr, unsigned level, const struct known_block **ret,
		    struct btrkit_error *err)
{
	struct block_refs refs = { .err = err, .level = level };
	struct known_block *b;
	int failed;

	HASH_FIND(hh, r->known, &bytenr, sizeof(bytenr), b);
	if (b) {
		*ret = b;
		return 0;
	}
	if (level >= LEVELS_MAX)
		return err_corrupt(err, "level", "level is too high for parent block %" PRIu64, bytenr);
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_nomem(err);
	b->bytenr = bytenr;
	failed = extent_for_each_ref(&r->extents, bytenr, collect_block_ref, &refs, err);
	if (!failed && refs.level != level)
		failed = err_corrupt(err, "level", "block %" PRIu64 " has level %u, expected %u", bytenr,
				     refs.level, level);
	for (size_t i = 0; !failed && i < refs.n; i++)
		failed = add_trees(r, b, level, &refs.at[i], err);
	free(refs.at);
	if (!failed) {
		HASH_ADD(hh, r->known, bytenr, sizeof(b->bytenr), b);
		if (!b->hh.tbl)
			failed = err_nomem(err);
		else
			r->num_known++;
	}
	if (failed) {
		free(b->trees);
		free(b);
		return failed;
	}
	*ret = b;
	return 0;
}

int references_trees_of(struct references *r, uint64_t bytenr, unsigned level, const uint64_t **ret, size_t *n,
			struct btrkit_error *err)
{
	const struct known_block *b;
	const int failed = trees_of(r, bytenr, level, &b, err);

	if (failed)
		return failed;
	*ret = b->trees;
	*n = b->n;
	return 0;
}
