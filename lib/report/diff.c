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
	btrkit_diff_lost_fn lost; /* NULL: the first damage ends the work */
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

static int pass_lost(void *ctx, unsigned side, const struct btrkit_error *what)
{
	const struct job *j = ctx;

	return j->lost(j->ctx, side, what);
}

static int compare(struct job *j, const struct tree_root *a, const struct tree_root *b, struct btrkit_error *err)
{
	const struct diff_calls calls = { take_item, j->lost ? pass_lost : NULL, j };

	j->tree = a ? a->id : b->id;
	j->key_offset = a ? a->key_offset : b->key_offset;
	return diff_trees(j->a, a, j->b, b, j->a == j->b, &calls, err);
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

/* The trees of a side. */
struct trees {
	struct job *j;
	unsigned side;
	struct cursor c;
	struct btrkit_key want;	/* from which the next one is searched for */
	struct btrkit_key at;	/* of the root item */
	struct tree_root root;
	bool ended;
	/* Keys that could not be read before @want. The other side is never behind them when the next are met. */
	struct btrkit_key lost_from, lost_to;
	bool lost, lost_rest;	/* there are such keys; all that follow are */
};

/* Skips what cannot be read, from *@from to before *@end. @more: it continues what was skipped just before */
static void skip(struct trees *t, bool more, const struct btrkit_key *from, const struct btrkit_key *end)
{
	if (!more)
		t->lost_from = *from;
	t->lost = true;
	t->lost_rest = key_cmp(end, &t->want) <= 0 || !key_cmp(end, &KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX));
	t->ended |= t->lost_rest;
	t->lost_to = t->want = *end;
}

/* Finds the next root item. @return 0; 1: there is none; <0: @from and @end have the keys that are lost */
static int seek_root(struct trees *t, struct root_item *item, struct btrkit_key *from, struct btrkit_key *end,
		     struct btrkit_error *err)
{
	int r = cursor_seek(&t->c, &t->want, err);

	while (!r && t->c.item.key.type != KEY_ROOT_ITEM)
		r = cursor_next(&t->c, err);
	if (!r) {
		*from = t->c.item.key;
		*end = behind(from);
		r = cursor_blame(&t->c, root_item_decode(&t->c.fs->items, &t->c.item, item, err), err);
	} else if (r < 0 && cursor_lost_keys(&t->c, from, end)) {
		*from = t->want;
		*end = KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX);
	}
	return r;
}

/* Finds the next tree in the root tree. */
static int next_root(struct trees *t, struct btrkit_error *err)
{
	const struct job *j = t->j;

	for (bool more = false; !t->ended;) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct btrkit_key from, end;
		struct root_item item;
		int r = seek_root(t, &item, &from, &end, &what);

		if (r < 0) {
			/* Blocks of the root trees of two filesystems were told when these trees were compared. */
			const bool told = j->a != j->b && !(what.places & BTRKIT_AT_SLOT);

			if (r == -ENOMEM || !j->lost)
				return err_pass(err, &what, r);
			skip(t, more, &from, &end);
			more = true;
			r = told ? 0 : j->lost(j->ctx, t->side, &what);
			if (r)
				return r;
		} else if (r) {
			t->ended = true;
		} else if (!item.refs && item.drop_progress.objectid) {
			/* Skip a partly deleted subvolume, because its freed blocks may have been reused. */
			t->want = end;
		} else {
			t->at = from;
			t->root = fs_root_of(t->c.fs, &from, &item);
			return 0;
		}
	}
	return 0;
}

/* Whether the side may have had a tree whose root item cannot be read. */
static bool may_have_had(const struct trees *t, const struct btrkit_key *key)
{
	return t->lost && key_cmp(key, &t->lost_from) >= 0 && (t->lost_rest || key_cmp(key, &t->lost_to) < 0);
}

static int compare_named(struct job *j, struct btrkit_error *err)
{
	struct trees t[2] = { { .j = j, .side = 0 }, { .j = j, .side = 1 } };
	int r = 0;

	cursor_init(&t[0].c, j->a, &j->a->root_tree);
	cursor_init(&t[1].c, j->b, &j->b->root_tree);
	while (!r) {
		int order;

		for (int i = 0; !r && i < 2; i++)
			r = next_root(&t[i], err);
		if (r || (t[0].ended && t[1].ended))
			break;
		order = t[0].ended ? 1 : t[1].ended ? -1 : root_cmp(&t[0].at, &t[1].at);
		if (!order || !may_have_had(&t[order < 0], &t[order > 0].at))
			r = compare(j, order <= 0 ? &t[0].root : NULL, order >= 0 ? &t[1].root : NULL, err);
		if (order <= 0)
			t[0].want = behind(&t[0].at);
		if (order >= 0)
			t[1].want = behind(&t[1].at);
	}
	cursor_release(&t[0].c);
	cursor_release(&t[1].c);
	return r;
}

static int compare_all(struct job *j, struct btrkit_error *err)
{
	int r = compare(j, &j->a->root_tree, &j->b->root_tree, err);

	if (!r)
		r = compare(j, &j->a->chunk_tree, &j->b->chunk_tree, err);
	return r ? r : compare_named(j, err);
}

int btrkit_diff_around(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, btrkit_diff_fn fn,
		       btrkit_diff_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct job j = { .a = a->fs, .b = b->fs, .fn = fn, .lost = lost, .ctx = ctx };
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

int btrkit_diff(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, btrkit_diff_fn fn, void *ctx,
		struct btrkit_error *err)
{
	return btrkit_diff_around(a, b, fn, NULL, ctx, err);
}
