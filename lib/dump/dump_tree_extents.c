// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects the data extents of an inode, to select their items in other trees. */
#include "lib/dump/dump_tree_extents.h"

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/tree/cursor.h"

struct list {
	struct dump_data *at;
	size_t n, room;
};

static int compare(const void *a, const void *b)
{
	const struct dump_data *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, and merges adjacent or overlapping ranges. */
static void tidy(struct list *l)
{
	size_t n = 0;

	if (l->n)
		qsort(l->at, l->n, sizeof(*l->at), compare);
	for (size_t i = 0; i < l->n; i++) {
		if (!n || l->at[i].start > l->at[n - 1].end)
			l->at[n++] = l->at[i];
		else if (l->at[i].end > l->at[n - 1].end)
			l->at[n - 1].end = l->at[i].end;
	}
	l->n = n;
}

static int make_room(struct list *l, struct btrkit_error *err)
{
	const size_t room = l->room ? 2 * l->room : 256;
	struct dump_data *more;

	if (l->n < l->room)
		return 0;
	/* Snapshots often have the same extents, which makes room when merged. */
	tidy(l);
	if (l->n < l->room / 2)
		return 0;
	more = reallocarray(l->at, room, sizeof(*more));
	if (!more)
		return err_nomem(err);
	l->at = more;
	l->room = room;
	return 0;
}

static int add_item(struct btrkit_fs *fs, const struct item *item, struct list *l, struct btrkit_error *err)
{
	struct file_extent fe;
	int ret;

	/* Invalid items are reported when they are shown. */
	if (file_extent_decode(&fs->items, item, &fe, NULL) || fe.type == FILE_EXTENT_INLINE || !fe.disk_bytenr ||
	    !fe.disk_num_bytes || fe.disk_bytenr > UINT64_MAX - fe.disk_num_bytes)
		return 0;
	ret = make_room(l, err);
	if (!ret)
		l->at[l->n++] = (struct dump_data){ fe.disk_bytenr, fe.disk_bytenr + fe.disk_num_bytes };
	return ret;
}

static int add_inode(struct btrkit_fs *fs, const struct tree_root *root, uint64_t inode, struct list *l,
		     struct btrkit_error *err)
{
	struct btrkit_key at = KEY(inode, KEY_EXTENT_DATA, 0);
	struct cursor c;
	int ret;

	cursor_init(&c, fs, root);
	c.once = true;
	c.forward = true;
	/* Damaged blocks are reported when they are shown. */
	ret = cursor_next_around(&c, &at, true, NULL, NULL, err);
	while (!ret && at.objectid == inode && at.type == KEY_EXTENT_DATA) {
		ret = add_item(fs, &c.item, l, err);
		if (!ret)
			ret = cursor_next_around(&c, &at, false, NULL, NULL, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

static bool is_asked(const struct btrkit_dump_options *o, uint64_t tree, uint64_t id)
{
	if (tree)
		return id == tree;
	for (size_t i = 0; i < o->num_trees; i++)
		if (o->trees[i] == id)
			return true;
	return !o->num_trees && oid_is_file_tree(id);
}

int dump_select_extents(struct btrkit_fs *fs, const struct btrkit_dump_options *o, uint64_t tree, uint64_t inode,
			struct dump_data **list, size_t *n, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(0, 0, 0);
	struct list l = { 0 };
	struct cursor c;
	int ret;

	cursor_init(&c, fs, &fs->root_tree);
	ret = cursor_next_around(&c, &at, true, NULL, NULL, err);
	while (!ret) {
		struct root_item item;

		if (at.type == KEY_ROOT_ITEM && is_asked(o, tree, at.objectid) &&
		    !root_item_decode(&fs->items, &c.item, &item, NULL)) {
			const struct tree_root root = fs_root_of(fs, &at, &item);

			ret = add_inode(fs, &root, inode, &l, err);
		}
		if (!ret)
			ret = cursor_next_around(&c, &at, false, NULL, NULL, err);
	}
	cursor_release(&c);
	tidy(&l);
	*list = l.at;
	*n = l.n;
	return ret < 0 ? ret : 0;
}
