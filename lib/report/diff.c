// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the differences between two trees, or between all trees of two filesystems. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/root.h"
#include "lib/report/diff_trees.h"
#include "lib/tree/cursor.h"

struct job {
	struct btrkit_fs *a, *b;
	btrkit_diff_fn fn;
	void *ctx;
	uint64_t tree, key_offset; /* being compared; that of side a, if it exists there */
};

static int take_item(void *ctx, const struct item *a, const struct item *b)
{
	struct job *j = ctx;
	const struct btrkit_diff_item x = {
		.tree = j->tree,
		.key_offset = j->key_offset,
		.key = a ? a->key : b->key,
		.a = a ? a->data : NULL,
		.b = b ? b->data : NULL,
		.a_size = a ? a->size : 0,
		.b_size = b ? b->size : 0,
	};

	return j->fn(j->ctx, &x);
}

static int compare(struct job *j, const struct tree_root *a, const struct tree_root *b, struct btrkit_error *err)
{
	j->tree = a ? a->id : b->id;
	j->key_offset = a ? a->key_offset : b->key_offset;
	return diff_trees(j->a, a, j->b, b, j->a == j->b, take_item, j, err);
}

/* Finds the next tree in the root tree, from @key on. @return 0; 1: no more trees; <0 */
static int next_root(struct cursor *c, const struct btrkit_key *key, struct btrkit_key *at, struct tree_root *ret,
		     struct btrkit_error *err)
{
	struct root_item item;
	int r = cursor_seek(c, key, err);

	while (!r) {
		if (c->item.key.type == KEY_ROOT_ITEM) {
			r = cursor_blame(c, root_item_decode(&c->fs->items, &c->item, &item, err), err);
			if (r)
				return r;
			*at = c->item.key;
			*ret = fs_root_of(c->fs, at, &item);
			/* Skip a partly deleted subvolume, because its freed blocks may have been reused. */
			if (item.refs || !item.drop_progress.objectid)
				return 0;
		}
		r = cursor_next(c, err);
	}
	return r;
}

/*
 * Trees match by objectid. For relocation trees, the offset (the subvolume) must match too; other offsets are ignored.
 */
static int root_cmp(const struct btrkit_key *a, const struct btrkit_key *b)
{
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->objectid != OID_TREE_RELOC || a->offset == b->offset)
		return 0;
	return a->offset < b->offset ? -1 : 1;
}

static struct btrkit_key behind(const struct btrkit_key *key)
{
	if (key->objectid == OID_TREE_RELOC && key->offset != UINT64_MAX)
		return KEY(key->objectid, key->type, key->offset + 1);
	/* Only the end follows the highest objectid. */
	if (key->objectid == UINT64_MAX)
		return KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX);
	return KEY(key->objectid + 1, 0, 0);
}

static int compare_named(struct job *j, struct btrkit_error *err)
{
	struct btrkit_key want[2] = { KEY(0, 0, 0), KEY(0, 0, 0) }, at[2];
	struct cursor c[2];
	int r = 0;

	cursor_init(&c[0], j->a, &j->a->root_tree);
	cursor_init(&c[1], j->b, &j->b->root_tree);
	while (!r) {
		struct tree_root root[2];
		int got[2], order;

		for (int i = 0; !r && i < 2; i++) {
			got[i] = next_root(&c[i], &want[i], &at[i], &root[i], err);
			r = got[i] < 0 ? got[i] : 0;
		}
		if (r || (got[0] && got[1]))
			break;
		order = got[0] ? 1 : got[1] ? -1 : root_cmp(&at[0], &at[1]);
		r = compare(j, order <= 0 ? &root[0] : NULL, order >= 0 ? &root[1] : NULL, err);
		if (order <= 0)
			want[0] = behind(&at[0]);
		if (order >= 0)
			want[1] = behind(&at[1]);
	}
	cursor_release(&c[0]);
	cursor_release(&c[1]);
	return r;
}

static int compare_all(struct job *j, struct btrkit_error *err)
{
	int r = compare(j, &j->a->root_tree, &j->b->root_tree, err);

	if (!r)
		r = compare(j, &j->a->chunk_tree, &j->b->chunk_tree, err);
	return r ? r : compare_named(j, err);
}

int btrkit_diff(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, btrkit_diff_fn fn, void *ctx,
		struct btrkit_error *err)
{
	struct job j = { .a = a->fs, .b = b->fs, .fn = fn, .ctx = ctx };
	struct tree_root x, y;
	int r;

	if (!a->tree != !b->tree)
		return err_set(err, BTRKIT_INVALID, "one tree cannot be compared with all trees");
	if (!a->tree)
		return compare_all(&j, err);
	r = fs_find_tree(a->fs, a->tree, &x, NULL, err);
	if (!r)
		r = fs_find_tree(b->fs, b->tree, &y, NULL, err);
	return r ? r : compare(&j, &x, &y, err);
}
