// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/xattr.h"

#include "lib/format/items/files/dir.h"
#include "lib/fs/subvolume.h"

/* Reports the xattrs of one item, whose names have the same hash. */
static int tell_item(struct cursor *c, btrkit_xattr_fn fn, void *ctx, struct btrkit_error *err)
{
	struct dir_iter it;
	struct dir_entry e;
	int ret;

	ret = cursor_blame(c, item_validate(&c->fs->items, &c->item, err), err);
	if (ret)
		return ret;
	it = dir_first(&c->item);
	while (!(ret = dir_next(&it, &e, err))) {
		const struct btrkit_xattr x = { (const char *)e.name, e.data, e.name_len, e.data_len };

		ret = fn(ctx, &x);
		if (ret)
			return ret;
	}
	return ret < 0 ? cursor_blame(c, ret, err) : 0;
}

int xattrs_from(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t from, btrkit_xattr_fn fn, void *ctx,
		struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, KEY_XATTR_ITEM, from);
	struct subvolume s;
	struct cursor c;
	int ret;

	ret = subvolume_get(fs, root, &s, err);
	if (ret)
		return ret;
	cursor_init(&c, fs, &s.root);
	ret = cursor_seek(&c, &key, err);
	while (!ret && c.item.key.objectid == inode && c.item.key.type == KEY_XATTR_ITEM) {
		ret = tell_item(&c, fn, ctx, err);
		if (!ret)
			ret = cursor_next(&c, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

int btrkit_inode_xattrs(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_xattr_fn fn, void *ctx,
			struct btrkit_error *err)
{
	return xattrs_from(fs, root, inode, 0, fn, ctx, err);
}
