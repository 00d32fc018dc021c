// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/known_bad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/edit.h"

static int remember(struct overlay *o, uint64_t tree, const struct item *item, struct btrkit_error *err)
{
	struct known_bad *bad = malloc(sizeof(*bad) + item->size);

	if (!bad)
		return err_nomem(err);
	*bad = (struct known_bad){ .next = o->bad, .tree = tree, .key = item->key, .size = item->size };
	if (item->size)
		memcpy(bad->bytes, item->data, item->size);
	o->bad = bad;
	return 0;
}

int known_bad_add(struct edit_tree *t, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct btrkit_fs *fs = t->overlay->fs;
	struct item_ctx ctx = fs->items;
	struct cursor c;
	int ret;

	ctx.owner = t->c.root.id;
	cursor_init(&c, fs, &t->c.root);
	ret = cursor_find(&c, key, err);
	if (ret == 1)
		ret = err_set(err, BTRKIT_NOT_FOUND, "no such item");
	else if (!ret && !item_validate(&ctx, &c.item, NULL))
		ret = err_set(err, BTRKIT_INVALID, "the item is valid, so it needs no permission to stand");
	else if (!ret)
		ret = remember(t->overlay, ctx.owner, &c.item, err);
	cursor_release(&c);
	if (ret) {
		err_at_tree(err, ctx.owner);
		err_at_key(err, key);
	}
	return ret;
}

bool known_bad_stands(const struct overlay *o, uint64_t tree, const struct item *item)
{
	for (const struct known_bad *bad = o->bad; bad; bad = bad->next)
		if (bad->tree == tree && !key_cmp(&bad->key, &item->key) && bad->size == item->size &&
		    !memcmp(bad->bytes, item->data, item->size))
			return true;
	return false;
}

void known_bad_free(struct overlay *o)
{
	while (o->bad) {
		struct known_bad *next = o->bad->next;

		free(o->bad);
		o->bad = next;
	}
}
