// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space_cache/v1_files.h"

#include <sys/stat.h>

#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"

bool v1_files_has(struct v1_files *v, const struct cursor *c)
{
	const struct btrkit_key *key = &c->item.key;
	struct inode_item inode;

	if (key->objectid < OID_FIRST_FREE || key->objectid > OID_LAST_FREE || key->type > KEY_EXTENT_DATA)
		return false;
	if (key->type == KEY_INODE_ITEM &&
	    (inode_item_decode(&c->fs->items, &c->item, &inode, NULL) || !S_ISREG(inode.mode)))
		v->foreign = key->objectid;
	return key->objectid != v->foreign;
}

static void count_item(const struct cursor *c, uint64_t *ino, struct v1_count *n)
{
	struct file_extent fe;

	if (c->item.key.objectid != *ino)
		n->files++;
	*ino = c->item.key.objectid;
	/* Invalid items are not counted. */
	if (c->item.key.type != KEY_EXTENT_DATA || file_extent_decode(&c->fs->items, &c->item, &fe, NULL) ||
	    !fe.disk_bytenr)
		return;
	n->extents++;
	n->bytes += fe.disk_num_bytes;
}

static int count_files(struct cursor *c, struct v1_count *n, struct btrkit_error *err)
{
	const struct node *leaf = NULL;
	struct v1_files files = { 0 };
	uint64_t ino = 0;
	int ret;

	for (ret = cursor_seek(c, &KEY(OID_FIRST_FREE, 0, 0), err); !ret && c->item.key.objectid <= OID_LAST_FREE;
	     ret = cursor_next(c, err)) {
		if (!v1_files_has(&files, c))
			continue;
		n->blocks += cursor_leaf(c) != leaf;
		leaf = cursor_leaf(c);
		count_item(c, &ino, n);
	}
	return ret < 0 ? ret : 0;
}

static int count_headers(struct cursor *c, struct v1_count *n, struct btrkit_error *err)
{
	const struct node *leaf = NULL;
	int ret;

	for (ret = cursor_seek(c, &KEY(OID_FREE_SPACE, 0, 0), err);
	     !ret && c->item.key.objectid == OID_FREE_SPACE && !c->item.key.type; ret = cursor_next(c, err)) {
		n->headers++;
		n->blocks += cursor_leaf(c) != leaf;
		leaf = cursor_leaf(c);
	}
	return ret < 0 ? ret : 0;
}

int v1_count(struct btrkit_fs *fs, struct v1_count *ret, struct btrkit_error *err)
{
	struct v1_count n = { 0 };
	struct cursor c;
	int r;

	cursor_init(&c, fs, &fs->root_tree);
	c.scan = true;
	r = count_files(&c, &n, err);
	if (!r)
		r = count_headers(&c, &n, err);
	cursor_release(&c);
	if (!r)
		*ret = n;
	return r;
}
