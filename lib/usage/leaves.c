// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the leaves of a tree level by level, so that an unreadable block does not prevent finding later ones. Keys are
 * required to increase, so no block is listed twice, even if pointers are damaged.
 */
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/tree/node.h"
#include "lib/usage/state.h"

struct node_ref usage_leaf_ref(const struct usage_leaves *l, size_t i)
{
	const struct usage_leaf *leaf = (const struct usage_leaf *)l->list.at + i;
	const bool is_root = leaf->bytenr == l->root.bytenr;

	return (struct node_ref){ leaf->bytenr, leaf->generation, l->root.id, l->level, is_root ? NULL : &leaf->key };
}

int usage_leaf_lost(struct usage_leaves *l, size_t i, struct btrkit_error *err)
{
	const struct usage_leaf *leaf = (const struct usage_leaf *)l->list.at + i;
	struct usage_lost *lost = usage_list_add(&l->lost, sizeof(*lost), err);

	if (!lost)
		return -ENOMEM;
	lost->first = leaf->key.objectid;
	lost->last = i + 1 < l->list.n ? leaf[1].key.objectid : UINT64_MAX;
	return 0;
}

static int add_child(struct usage_work *w, struct usage_list *to, const struct node *n, uint32_t slot,
		     const struct usage_leaves *l, struct btrkit_error *err)
{
	struct btrkit_key key;
	const struct node_ref ref = node_child(n, slot, l->root.id, &key);
	const struct usage_leaf *before = to->n ? (const struct usage_leaf *)to->at + to->n - 1 : NULL;
	struct usage_leaf *leaf;

	if (before && key_cmp(&before->key, &key) >= 0) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		err_corrupt(&what, "key", "keys are out of order");
		err_at_tree(&what, l->root.id);
		err_at_logical(&what, n->bytenr);
		err_at_item(&what, slot, &key);
		return l->told ? 0 : usage_damage(w, -EUCLEAN, &what, err);
	}
	leaf = usage_list_add(to, sizeof(*leaf), err);
	if (!leaf)
		return -ENOMEM;
	*leaf = (struct usage_leaf){ ref.bytenr, ref.generation, key };
	return 0;
}

int usage_leaves_descend(struct usage_work *w, struct usage_leaves *l, struct btrkit_error *err)
{
	struct usage_list below = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < l->list.n; i++) {
		const struct node_ref ref = usage_leaf_ref(l, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct node *n;

		ret = node_get(w->fs, &ref, &n, &what);
		if (ret) {
			err_at_tree(&what, l->root.id);
			ret = l->told && ret != -ENOMEM ? 0 : usage_damage(w, ret, &what, err);
			if (!ret)
				ret = usage_leaf_lost(l, i, err);
			continue;
		}
		w->u->total.blocks_read += !l->told;
		for (uint32_t slot = 0; !ret && slot < n->nritems; slot++)
			ret = add_child(w, &below, n, slot, l, err);
		node_put(w->fs, n);
	}
	free(l->list.at);
	l->list = below;
	l->level--;
	return ret;
}

int usage_leaves_begin(const struct tree_root *root, struct usage_leaves *ret, struct btrkit_error *err)
{
	struct usage_leaf *first;

	*ret = (struct usage_leaves){ .root = *root, .level = root->level };
	first = usage_list_add(&ret->list, sizeof(*first), err);
	if (!first)
		return -ENOMEM;
	*first = (struct usage_leaf){ root->bytenr, root->generation, KEY(0, 0, 0) };
	return 0;
}

int usage_leaves_find(struct usage_work *w, const struct tree_root *root, struct usage_leaves *ret,
		      struct btrkit_error *err)
{
	int r = usage_leaves_begin(root, ret, err);

	while (!r && ret->level)
		r = usage_leaves_descend(w, ret, err);
	return r;
}

void usage_leaves_release(struct usage_leaves *l)
{
	free(l->list.at);
	free(l->lost.at);
	*l = (struct usage_leaves){ 0 };
}

int usage_each_leaf(struct usage_work *w, const struct tree_root *root, usage_leaf_fn visit, void *ctx,
		    struct btrkit_error *err)
{
	struct usage_leaves leaves;
	int ret = usage_leaves_find(w, root, &leaves, err);

	for (size_t i = 0; !ret && i < leaves.list.n; i++) {
		const struct node_ref ref = usage_leaf_ref(&leaves, i);
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct node *leaf;

		ret = node_get(w->fs, &ref, &leaf, &what);
		if (ret) {
			err_at_tree(&what, root->id);
			ret = usage_damage(w, ret, &what, err);
			continue;
		}
		w->u->total.blocks_read++;
		ret = visit(ctx, leaf, err);
		node_put(w->fs, leaf);
	}
	usage_leaves_release(&leaves);
	return ret;
}
