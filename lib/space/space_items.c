// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items that describe chunks and devices, which must or must not exist. */
#include "lib/space/space_impl.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/tree/edit.h"

int space_missing_item(int ret, uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	if (ret == -ENOENT || ret == 1) {
		ret = err_corrupt(err, NULL, "item of a chunk is missing");
		err_at_tree(err, tree);
		err_at_key(err, key);
	}
	return ret;
}

/* Says that an item exists that must not. */
static int unexpected_item(uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	int ret = err_corrupt(err, NULL, "item of another chunk has the key of a new one");

	err_at_tree(err, tree);
	err_at_key(err, key);
	return ret;
}

int space_expect_item(struct space *s, uint64_t tree, const struct btrkit_key *key, bool there,
		      struct btrkit_error *err)
{
	struct tree_root root;
	struct cursor c;
	int ret = fs_find_tree(s->fs, tree, &root, NULL, err);

	if (ret)
		return ret;
	cursor_init(&c, s->fs, &root);
	ret = cursor_find(&c, key, err);
	cursor_release(&c);
	if (there || ret < 0)
		return space_missing_item(ret, tree, key, err);
	return ret ? 0 : unexpected_item(tree, key, err);
}

int space_read_device(struct space *s, uint64_t devid, struct disk_dev_item *ret, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, devid);
	struct dev_item item;
	struct cursor c;
	int r;

	cursor_init(&c, s->fs, &s->fs->chunk_tree);
	r = space_missing_item(cursor_find(&c, &key, err), OID_CHUNK_TREE, &key, err);
	if (!r)
		r = cursor_blame(&c, dev_item_decode(&c.item, &item, err), err);
	if (!r)
		memcpy(ret, c.item.data, sizeof(*ret));
	cursor_release(&c);
	return r;
}

int space_edited(const struct space *s, int ret, const struct btrkit_error *err)
{
	return failure_note_any(s->overlay->failure, ret, err);
}

int space_delete_item(struct space *s, uint64_t tree, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, tree, &t, err);

	return ret ? ret : space_missing_item(edit_delete(t, key, err), tree, key, err);
}

int space_insert_item(struct space *s, uint64_t tree, const struct btrkit_key *key, const void *data, uint32_t size,
		      struct btrkit_error *err)
{
	struct edit_tree *t;
	int ret = overlay_tree(s->overlay, tree, &t, err);

	if (!ret)
		ret = edit_insert(t, key, data, size, err);
	return ret == -EEXIST ? unexpected_item(tree, key, err) : ret;
}
