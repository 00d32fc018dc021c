// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the differences between two trees, or between all trees of two filesystems. */
#include <btrkit/inspect.h>

#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/format/items/render.h"
#include "lib/format/items/root.h"
#include "lib/report/diff.h"
#include "lib/report/list.h"
#include "lib/tree/cursor.h"

#define FLAGS_KNOWN (BTRKIT_DIFF_HIDE_NAMES | BTRKIT_DIFF_BRIEF)

struct job {
	struct btrkit_fs *a, *b;
	struct emit *e;
	unsigned flags, render;
	uint64_t tree;	/* being compared; that of side a, if it exists there */
	bool told;	/* the heading of the tree was printed */
	bool differ;
};

static void render_body(struct job *j, const struct btrkit_fs *fs, const struct item *item)
{
	const struct item_type *type = item_type_find(&item->key);
	struct item_ctx ctx = fs->items;

	ctx.owner = j->tree;
	if (type)
		type->render(j->e, &ctx, item, j->render);
	else
		render_data(j->e, "data", item->data, item->size, j->render);
}

/* Prints one side of an item: a line with a sign in text, a member with size and contents in JSON. */
static void print_side(struct job *j, const struct btrkit_fs *fs, const char *name, const char *sign,
		       const struct item *item)
{
	struct emit *e = j->e;

	if (!item)
		return;
	emit_object(e, name);
	if (e->form == EMIT_TEXT)
		key_emit(e, "", sign, &item->key);
	emit_u64(e, "size", " itemsize ", item->size);
	emit_text(e, "\n");
	if (!(j->flags & BTRKIT_DIFF_BRIEF)) {
		emit_object(e, "item");
		render_body(j, fs, item);
		emit_object_end(e);
	}
	emit_object_end(e);
}

static int print_item(void *ctx, const struct item *a, const struct item *b)
{
	struct job *j = ctx;
	struct emit *e = j->e;

	j->differ = true;
	if (!j->told && e->form == EMIT_TEXT) {
		objectid_emit(e, "", "tree ", j->tree, 0);
		emit_text(e, "\n");
	}
	j->told = true;
	emit_object(e, NULL);
	if (e->form == EMIT_JSON) {
		emit_word(e, "kind", !a ? "added" : !b ? "removed" : "changed");
		emit_u64(e, "tree", "", j->tree);
		key_emit(e, "key", "", a ? &a->key : &b->key);
	}
	print_side(j, j->a, "old", "-\t", a);
	print_side(j, j->b, "new", "+\t", b);
	emit_object_end(e);
	return emit_failed(e);
}

static int compare(struct job *j, const struct tree_root *a, const struct tree_root *b, struct btrkit_error *err)
{
	j->tree = a ? a->id : b->id;
	j->told = false;
	return diff_trees(j->a, a, j->b, b, j->a == j->b, print_item, j, err);
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

int btrkit_diff_print(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, unsigned flags,
		      enum btrkit_format format, btrkit_write_fn write, void *ctx, bool *differ,
		      struct btrkit_error *err)
{
	struct tree_root x, y;
	struct emit e;
	struct job j = {
		.a = a->fs, .b = b->fs, .e = &e, .flags = flags,
		.render = (flags & BTRKIT_DIFF_HIDE_NAMES ? RENDER_HIDE_NAMES : 0) | RENDER_CSUM_ITEMS,
	};
	int r;

	if (flags & ~FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", flags & ~FLAGS_KNOWN);
	if (!a->tree != !b->tree)
		return err_set(err, BTRKIT_INVALID, "one tree cannot be compared with all trees");
	r = a->tree ? fs_find_tree(a->fs, a->tree, &x, NULL, err) : 0;
	if (!r && b->tree)
		r = fs_find_tree(b->fs, b->tree, &y, NULL, err);
	if (!r)
		r = list_begin(&e, format, "diff", write, ctx, err);
	if (r)
		return r;
	r = list_end(&e, a->tree ? compare(&j, &x, &y, err) : compare_all(&j, err));
	if (!r)
		*differ = j.differ;
	return r;
}
