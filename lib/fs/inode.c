// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/fs/inode.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <btrkit/inode.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/fs/path.h"
#include "lib/fs/subvolume.h"

int inode_read(struct cursor *c, uint64_t inode, struct inode_item *ret, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(inode, KEY_INODE_ITEM, 0);
	int r;

	r = cursor_find(c, &key, err);
	if (r == 1)
		return err_set(err, BTRKIT_NOT_FOUND, "no inode %" PRIu64 " in subvolume %" PRIu64, inode, c->root.id);
	return r ? r : cursor_blame(c, inode_item_decode(&c->fs->items, &c->item, ret, err), err);
}

static struct btrkit_time time_of(const struct disk_time *t)
{
	return (struct btrkit_time){ (int64_t)le64_get(t->sec), le32_get(t->nsec) };
}

/* Device numbers are stored in the format of Linux: the minor in the lower 20 bits. */
static uint64_t device_of(uint64_t rdev)
{
	return makedev((unsigned)(rdev >> 20), (unsigned)(rdev & 0xfffff));
}

void inode_describe(uint64_t root, uint64_t number, const struct inode_item *i, struct btrkit_inode *ret)
{
	*ret = (struct btrkit_inode){
		.root = root,
		.inode = number,
		.generation = i->generation,
		.transid = i->transid,
		.sequence = i->sequence,
		.size = i->size,
		.nbytes = i->nbytes,
		.rdev = S_ISCHR(i->mode) || S_ISBLK(i->mode) ? device_of(i->rdev) : 0,
		.flags = i->flags,
		.nlink = i->nlink,
		.uid = i->uid,
		.gid = i->gid,
		.mode = i->mode,
		.atime = time_of(&i->atime),
		.ctime = time_of(&i->ctime),
		.mtime = time_of(&i->mtime),
		.otime = time_of(&i->otime),
	};
}

int inode_open(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct cursor *c, struct inode_item *item,
	       struct btrkit_error *err)
{
	struct subvolume s = { 0 };
	int ret;

	ret = subvolume_get(fs, root, &s, err);
	cursor_init(c, fs, &s.root);
	return ret ? ret : inode_read(c, inode, item, err);
}

int btrkit_inode_get(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct btrkit_inode *ret,
		     struct btrkit_error *err)
{
	struct inode_item item;
	struct cursor c;
	int r;

	r = inode_open(fs, root, inode, &c, &item, err);
	cursor_release(&c);
	if (!r)
		inode_describe(root, inode, &item, ret);
	return r;
}

static int find(struct btrkit_fs *fs, uint64_t root, const char *path, bool last, struct btrkit_inode *ret,
		struct btrkit_error *err)
{
	struct inode_place place;
	struct subvolume s;
	int r;

	r = subvolume_get(fs, root, &s, err);
	if (!r)
		r = path_resolve(fs, &s.root, path, last, &place, err);
	return r ? r : btrkit_inode_get(fs, place.root.id, place.inode, ret, err);
}

int btrkit_inode_find(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_inode *ret,
		      struct btrkit_error *err)
{
	return find(fs, root, path, false, ret, err);
}

int btrkit_inode_find_target(struct btrkit_fs *fs, uint64_t root, const char *path, struct btrkit_inode *ret,
			     struct btrkit_error *err)
{
	return find(fs, root, path, true, ret, err);
}

/* Converts the current item. */
static int describe_extent(const struct cursor *c, struct btrkit_file_extent *x, struct btrkit_error *err)
{
	struct file_extent fe;
	int ret;

	ret = cursor_blame(c, file_extent_decode(&c->fs->items, &c->item, &fe, err), err);
	if (ret)
		return ret;
	*x = (struct btrkit_file_extent){
		.logical = c->item.key.offset,
		.length = fe.num_bytes,
		.bytenr = fe.disk_bytenr,
		.disk_length = fe.disk_num_bytes,
		.offset = fe.offset,
		.ram_length = fe.ram_bytes,
		.generation = fe.generation,
		.type = (enum btrkit_file_extent_type)fe.type,
		.compression = fe.compression,
	};
	if (fe.type == FILE_EXTENT_INLINE) {
		x->length = fe.ram_bytes;
		x->disk_length = fe.inline_len;
	}
	return 0;
}

int inode_extents_from(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t from, btrkit_file_extent_fn fn,
		       void *ctx, struct btrkit_error *err)
{
	struct btrkit_key key = KEY(inode, KEY_EXTENT_DATA, from);
	struct inode_item item;
	struct cursor c;
	int ret;

	ret = inode_open(fs, root, inode, &c, &item, err);
	if (!ret && !S_ISREG(item.mode))
		ret = err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a regular file", inode);
	c.scan = true;
	c.until = KEY(inode, KEY_EXTENT_DATA, UINT64_MAX);
	if (!ret)
		ret = cursor_seek(&c, &key, err);
	while (!ret && c.item.key.objectid == inode && c.item.key.type == KEY_EXTENT_DATA) {
		struct btrkit_file_extent x;

		ret = describe_extent(&c, &x, err);
		if (!ret)
			ret = fn(ctx, &x);
		if (!ret)
			ret = cursor_next(&c, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

int btrkit_inode_extents(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_file_extent_fn fn, void *ctx,
			 struct btrkit_error *err)
{
	return inode_extents_from(fs, root, inode, 0, fn, ctx, err);
}

/* A walk of file extent items that goes on behind damage. */
struct walk {
	struct cursor c;
	uint64_t inode, size;
	btrkit_lost_fn lost;
	void *ctx;
};

/* A cursor_lost_fn. */
static int lose_block(void *ctx, int ret, const struct btrkit_error *what)
{
	struct btrkit_error told = *what;
	struct btrkit_key first, end;
	const struct walk *w = ctx;
	uint64_t from;

	(void)ret;
	/* The extents end before it. */
	if (!cursor_lost_keys(&w->c, &first, &end) &&
	    key_cmp(&first, &KEY(w->inode, KEY_EXTENT_DATA, UINT64_MAX)) > 0)
		return 1;
	from = first.objectid == w->inode && first.type == KEY_EXTENT_DATA ? first.offset : 0;
	if (end.objectid == w->inode && end.type == KEY_EXTENT_DATA && end.offset > from)
		text_add(told.message, sizeof(told.message),
			 "; extents of bytes %" PRIu64 " to %" PRIu64 " are missing", from, end.offset - 1);
	else if (w->size > from)
		text_add(told.message, sizeof(told.message),
			 "; extents of bytes %" PRIu64 " to %" PRIu64 " are missing", from, w->size - 1);
	else
		text_add(told.message, sizeof(told.message), "; extents from byte %" PRIu64 " on are missing", from);
	return w->lost(w->ctx, &told);
}

static int walk_extents(struct walk *w, btrkit_file_extent_fn fn, struct btrkit_error *err)
{
	struct btrkit_key at = KEY(w->inode, KEY_EXTENT_DATA, 0);
	bool first = true;
	int ret;

	while (!(ret = cursor_next_around(&w->c, &at, first, lose_block, w, err)) && at.objectid == w->inode &&
	       at.type == KEY_EXTENT_DATA) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;
		struct btrkit_file_extent x;

		first = false;
		ret = describe_extent(&w->c, &x, &what);
		if (ret)
			text_add(what.message, sizeof(what.message), "; the extent at byte %" PRIu64 " is missing",
				 at.offset);
		ret = ret ? w->lost(w->ctx, &what) : fn(w->ctx, &x);
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

int btrkit_inode_extents_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_file_extent_fn fn,
				btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct walk w = { .inode = inode, .lost = lost, .ctx = ctx };
	struct inode_item item;
	int ret;

	ret = inode_open(fs, root, inode, &w.c, &item, err);
	if (!ret && !S_ISREG(item.mode))
		ret = err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a regular file", inode);
	w.size = ret ? 0 : item.size;
	w.c.scan = true;
	w.c.until = KEY(inode, KEY_EXTENT_DATA, UINT64_MAX);
	if (!ret)
		ret = walk_extents(&w, fn, err);
	cursor_release(&w.c);
	return ret;
}
