// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lookups of items and blocks for all passes. What cannot be read is reported by the passes that read all blocks; only
 * running out of memory ends the check.
 */
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"

static int ended_by_memory(struct check *c, int ret, const struct btrkit_error *err)
{
	return ret == -ENOMEM ? check_fail(c, ret, err) : ret;
}

struct lost {
	struct check *c;
	bool *flag;
};

static int lose(void *ctx, int ret, const struct btrkit_error *what)
{
	const struct lost *lost = ctx;

	if (ret == -ENOMEM)
		return check_fail(lost->c, ret, what);
	*lost->flag = true;
	return 0;
}

int check_each_item(struct check *c, const struct tree_root *root, bool *lost,
		    void (*take)(void *ctx, const struct item *item), void *ctx)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_key at = KEY(0, 0, 0);
	struct lost l = { c, lost };
	struct cursor cur;
	bool first = true;
	int ret;

	cursor_init(&cur, c->fs, root);
	cur.scan = true;
	/* This is by far the largest tree that is read in this way. */
	cur.once = root->id == OID_EXTENT_TREE;
	while (!(ret = cursor_next_around(&cur, &at, first, lose, &l, &err)) && !check_failed(c)) {
		first = false;
		take(ctx, &cur.item);
	}
	cursor_release(&cur);
	return ret < 0 ? check_fail(c, ret, &err) : c->failed;
}

int check_find(struct check *c, struct cursor *cur, const struct btrkit_key *key)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	return ended_by_memory(c, cursor_find(cur, key, &err), &err);
}

int check_seek(struct check *c, struct cursor *cur, const struct btrkit_key *key)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	return ended_by_memory(c, cursor_seek(cur, key, &err), &err);
}

int check_next(struct check *c, struct cursor *cur)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	return ended_by_memory(c, cursor_next(cur, &err), &err);
}

bool check_reread(struct check *c, const struct node_ref *ref, uint8_t *buf)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	return !ended_by_memory(c, node_read_uncached(c->fs, ref, buf, &err), &err);
}
