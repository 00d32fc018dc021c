// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/leaves.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/sweep/lost.h"

struct node_ref sweep_leaf_ref(const struct sweep_leaves *l, size_t i)
{
	const struct sweep_leaf *leaf = (const struct sweep_leaf *)l->list.at + i;
	const bool is_root = leaf->bytenr == l->root.bytenr;

	return (struct node_ref){ leaf->bytenr, leaf->generation, l->root.id, l->level, is_root ? NULL : &leaf->key };
}

int sweep_leaf_lost(struct sweep_leaves *l, size_t i, struct btrkit_error *err)
{
	const struct sweep_leaf *leaf = (const struct sweep_leaf *)l->list.at + i;

	return sweep_lost_add(&l->lost, leaf->key.objectid, i + 1 < l->list.n ? leaf[1].key.objectid : UINT64_MAX, err);
}

static int add_child(const struct sweep_blocks *from, struct array *to, const struct node *n, uint32_t slot,
		     uint64_t tree, struct btrkit_error *err)
{
	struct btrkit_key key;
	const struct node_ref ref = node_child(n, slot, tree, &key);
	const struct sweep_leaf *before = to->n ? (const struct sweep_leaf *)to->at + to->n - 1 : NULL;
	const bool ordered = !before || key_cmp(&before->key, &key) < 0;
	struct sweep_leaf *leaf;
	bool follow = ordered;
	int ret = from->pointer ? from->pointer(from->ctx, n, slot, &ref, ordered, &follow, err) : 0;

	if (ret || !follow)
		return ret;
	leaf = array_add(to, sizeof(*leaf), err);
	if (!leaf)
		return -ENOMEM;
	*leaf = (struct sweep_leaf){ ref.bytenr, ref.generation, key };
	return 0;
}

int sweep_leaves_descend(const struct sweep_blocks *from, struct sweep_leaves *l, struct btrkit_error *err)
{
	struct array below = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < l->list.n; i++) {
		const struct node_ref ref = sweep_leaf_ref(l, i);
		struct node *n = NULL;

		ret = from->get(from->ctx, &ref, &n, err);
		if (!ret && !n)
			ret = sweep_leaf_lost(l, i, err);
		for (uint32_t slot = 0; !ret && n && slot < n->nritems; slot++)
			ret = add_child(from, &below, n, slot, l->root.id, err);
		if (n)
			from->put(from->ctx, n);
	}
	free(l->list.at);
	l->list = below;
	l->level--;
	return ret;
}

int sweep_leaves_begin(const struct tree_root *root, struct sweep_leaves *ret, struct btrkit_error *err)
{
	struct sweep_leaf *first;

	*ret = (struct sweep_leaves){ .root = *root, .level = root->level };
	first = array_add(&ret->list, sizeof(*first), err);
	if (!first)
		return -ENOMEM;
	*first = (struct sweep_leaf){ root->bytenr, root->generation, KEY(0, 0, 0) };
	return 0;
}

int sweep_leaves_find(const struct sweep_blocks *from, const struct tree_root *root, struct sweep_leaves *ret,
		      struct btrkit_error *err)
{
	int r = sweep_leaves_begin(root, ret, err);

	while (!r && ret->level)
		r = sweep_leaves_descend(from, ret, err);
	return r;
}

void sweep_leaves_release(struct sweep_leaves *l)
{
	free(l->list.at);
	free(l->lost.at);
	*l = (struct sweep_leaves){ 0 };
}

int sweep_each_leaf(const struct sweep_blocks *from, const struct tree_root *root, sweep_leaf_fn visit, void *ctx,
		    struct btrkit_error *err)
{
	struct sweep_leaves leaves;
	int ret = sweep_leaves_find(from, root, &leaves, err);

	for (size_t i = 0; !ret && i < leaves.list.n; i++) {
		const struct node_ref ref = sweep_leaf_ref(&leaves, i);
		struct node *leaf = NULL;

		ret = from->get(from->ctx, &ref, &leaf, err);
		if (ret || !leaf)
			continue;
		ret = visit(ctx, leaf, err);
		from->put(from->ctx, leaf);
	}
	sweep_leaves_release(&leaves);
	return ret;
}
