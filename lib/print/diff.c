// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the differences between two trees, or between all trees of two filesystems. */
#include "lib/print/diff.h"

#include <btrkit/dump.h>
#include <btrkit/inspect.h>

#include <string.h>

#include "lib/base/err.h"
#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"

#define FLAGS_KNOWN (PRINT_DIFF_HIDE_NAMES | PRINT_DIFF_BRIEF)

struct job {
	struct btrkit_fs *a, *b;
	struct emit e, item; /* item: the contents of an item, in memory */
	unsigned flags;
	uint64_t tree, key_offset; /* of the last heading */
	bool differ;
	btrkit_diff_lost_fn lost;
	void *lost_ctx;
	struct btrkit_error *err;
};

static int pass_lost(void *ctx, unsigned side, const struct btrkit_error *what)
{
	const struct job *j = ctx;

	return j->lost(j->lost_ctx, side, what);
}

static int keep(void *ctx, const void *data, size_t len)
{
	struct emit *item = ctx;

	emit_bytes(item, data, len);
	return emit_failed(item);
}

/* Prints the contents of an item: lines, or the members of an object. */
static int print_body(struct job *j, struct btrkit_fs *fs, const struct btrkit_diff_item *x, const void *data,
		      uint32_t size)
{
	const bool json = j->e.form == EMIT_JSON;
	int ret;

	j->item.len = 0;
	ret = btrkit_dump_item(fs, x->tree, &x->key, data, size,
			       j->flags & PRINT_DIFF_HIDE_NAMES ? BTRKIT_DUMP_HIDE_NAMES : 0,
			       json ? BTRKIT_FORMAT_JSON : BTRKIT_FORMAT_TEXT, keep, &j->item, j->err);
	if (ret)
		return ret;
	if (!json)
		emit_bytes(&j->e, j->item.buf, j->item.len);
	/* Without the braces and the end of the line. */
	else if (j->item.len > 3)
		emit_members(&j->e, j->item.buf + 1, j->item.len - 3);
	return 0;
}

/* Prints one side of an item: a line with a sign in text, a member with size and contents in JSON. */
static int print_side(struct job *j, struct btrkit_fs *fs, const char *name, const char *sign,
		      const struct btrkit_diff_item *x, const void *data, uint32_t size)
{
	struct emit *e = &j->e;
	int ret = 0;

	if (!data)
		return 0;
	emit_object(e, name);
	if (e->form == EMIT_TEXT)
		key_emit(e, "", sign, &x->key);
	emit_u64(e, "size", " itemsize ", size);
	emit_text(e, "\n");
	if (!(j->flags & PRINT_DIFF_BRIEF)) {
		emit_object(e, "item");
		ret = print_body(j, fs, x, data, size);
		emit_object_end(e);
	}
	emit_object_end(e);
	return ret;
}

static int print_item(void *ctx, const struct btrkit_diff_item *x)
{
	struct job *j = ctx;
	struct emit *e = &j->e;
	int ret;

	if (e->form == EMIT_TEXT && (!j->differ || j->tree != x->tree || j->key_offset != x->key_offset)) {
		objectid_emit(e, "", "tree ", x->tree, 0);
		emit_text(e, "\n");
	}
	j->differ = true;
	j->tree = x->tree;
	j->key_offset = x->key_offset;
	emit_object(e, NULL);
	if (e->form == EMIT_JSON) {
		emit_word(e, "kind", !x->a ? "added" : !x->b ? "removed" : "changed");
		emit_u64(e, "tree", "", x->tree);
		key_emit(e, "key", "", &x->key);
	}
	ret = print_side(j, j->a, "old", "-\t", x, x->a, x->a_size);
	if (!ret)
		ret = print_side(j, j->b, "new", "+\t", x, x->b, x->b_size);
	emit_object_end(e);
	return ret ? ret : emit_failed(e);
}

int print_diff(const struct btrkit_diff_side *a, const struct btrkit_diff_side *b, unsigned flags,
	       enum btrkit_format format, btrkit_diff_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
	       bool *differ, struct btrkit_error *err)
{
	struct job j = { .a = a->fs, .b = b->fs, .flags = flags, .lost = lost, .lost_ctx = lost_ctx, .err = err };
	int r;

	if (flags & ~FLAGS_KNOWN)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", flags & ~FLAGS_KNOWN);
	if (emit_init(&j.item, EMIT_TEXT, NULL, NULL))
		return err_nomem(err);
	r = list_begin(&j.e, format, "diff", write, ctx, err);
	if (!r)
		r = list_end(&j.e, btrkit_diff_around(a, b, print_item, lost ? pass_lost : NULL, &j, err));
	emit_abandon(&j.item);
	if (!r)
		*differ = j.differ;
	return r;
}
