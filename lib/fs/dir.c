// SPDX-License-Identifier: LGPL-2.1-or-later
#include <btrkit/inode.h>

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/format/items/files/dir.h"
#include "lib/fs/dir.h"
#include "lib/fs/inode.h"
#include "lib/fs/subvolume.h"
#include "lib/sweep/lost.h"

int dir_entry_describe(const struct cursor *c, const struct dir_entry *d, uint64_t index, struct btrkit_dir_entry *ret,
		       struct btrkit_error *err)
{
	struct btrkit_dir_entry e = {
		.name = (const char *)d->name,
		.name_len = d->name_len,
		.root = c->root.id,
		.inode = d->location.objectid,
		.index = index,
		.type = dir_type_to_dirent(d->type),
	};

	if (d->location.type == KEY_ROOT_ITEM) {
		const int r = subvolume_lies_at_either(c->fs, e.inode, c->root.id, c->item.key.objectid, d->name,
						       d->name_len, err);

		if (r < 0)
			return r;
		/*
		 * The entry leads to the root directory of a subvolume or, if no subvolume is attached here, to an
		 * empty placeholder.
		 */
		e.root = r ? c->root.id : e.inode;
		e.inode = r ? BTRKIT_EMPTY_SUBVOLUME : OID_FIRST_FREE;
	}
	*ret = e;
	return 0;
}

/* Decodes the entry of a DIR_INDEX item, which has only one. */
static int read_entry(struct cursor *c, struct btrkit_dir_entry *e, struct btrkit_error *err)
{
	struct dir_iter it = dir_first(&c->item);
	struct dir_entry d;
	int ret;

	ret = dir_next(&it, &d, err);
	if (ret < 0)
		return cursor_blame(c, ret, err);
	if (ret)
		return cursor_blame(c, err_corrupt(err, "item", "directory index without an entry"), err);
	return dir_entry_describe(c, &d, c->item.key.offset, e, err);
}

int dir_entry_from(struct cursor *c, uint64_t inode, uint64_t index, struct btrkit_dir_entry *ret,
		   struct btrkit_error *err)
{
	int r = cursor_seek(c, &KEY(inode, KEY_DIR_INDEX, index), err);

	if (r)
		return r;
	if (c->item.key.objectid != inode || c->item.key.type != KEY_DIR_INDEX)
		return 1;
	return read_entry(c, ret, err);
}

int dir_entries_behind(const struct cursor *c, uint64_t inode, uint64_t index, uint64_t *next,
		       struct dir_lost *lost, struct btrkit_error *what)
{
	struct btrkit_key first, end;
	bool more;

	/* The leaf could be read, but not the item in it. */
	if (cursor_lost_keys(c, &first, &end))
		end = KEY(c->item.key.objectid, c->item.key.type, c->item.key.offset + 1);
	lost->block = what->places & BTRKIT_AT_LOGICAL ? what->logical : 0;
	more = end.objectid == inode && end.type == KEY_DIR_INDEX && end.offset > index;
	if (sweep_lost_add(&lost->ranges, index, more ? end.offset - 1 : UINT64_MAX, what))
		return -ENOMEM;
	if (!more) {
		text_add(what->message, sizeof(what->message), "; DIR_INDEX items from %" PRIu64 " on are missing",
			 index);
		return 1;
	}
	text_add(what->message, sizeof(what->message), "; DIR_INDEX items %" PRIu64 " to %" PRIu64 " are missing",
		 index, end.offset - 1);
	*next = end.offset;
	return 0;
}

/*
 * Reports what cannot be read.
 * @return 0: it goes on at *@index; 1: there is nothing behind; what @lost returned; -ENOMEM
 */
static int go_around(const struct cursor *c, uint64_t inode, uint64_t *index, struct dir_lost *l, btrkit_lost_fn lost,
		     void *ctx, struct btrkit_error *what, struct btrkit_error *err)
{
	const int end = dir_entries_behind(c, inode, *index, index, l, what);
	int ret;

	if (end < 0)
		return err_nomem(err);
	ret = lost(ctx, what);
	*what = (struct btrkit_error)BTRKIT_ERROR_INIT;
	return ret ? ret : end;
}

/* Lists the entries whose items have the key @from or a later one. */
static int list_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, const struct btrkit_key *from,
			btrkit_dir_entry_fn fn, void *ctx, struct btrkit_error *err)
{
	struct btrkit_dir_entry e;
	struct inode_item item;
	struct cursor c;
	int ret;

	ret = inode_open(fs, root, inode, &c, &item, err);
	if (!ret && !S_ISDIR(item.mode))
		ret = err_system(err, ENOTDIR, "inode %" PRIu64, inode);
	if (!ret)
		ret = cursor_seek(&c, from, err);
	while (!ret && c.item.key.objectid == inode && c.item.key.type == KEY_DIR_INDEX) {
		ret = read_entry(&c, &e, err);
		if (!ret)
			ret = fn(ctx, &e);
		if (!ret)
			ret = cursor_next(&c, err);
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Lists the entries that have DIR_INDEX items which can be read. @return 0; 1; what a callback returned; -ENOMEM */
static int list_around(struct cursor *c, uint64_t inode, struct dir_lost *l, btrkit_dir_entry_fn fn,
		       btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct btrkit_dir_entry e;
	uint64_t index = 0;
	int ret = cursor_seek(c, &KEY(inode, KEY_DIR_INDEX, 0), &what);

	for (;;) {
		if (!ret && (c->item.key.objectid != inode || c->item.key.type != KEY_DIR_INDEX))
			ret = 1;
		if (!ret)
			ret = read_entry(c, &e, &what);
		if (ret == 1)
			return 0;
		if (ret == -ENOMEM)
			return err_nomem(err);
		if (ret) {
			ret = go_around(c, inode, &index, l, lost, ctx, &what, err);
			if (ret)
				return ret;
			ret = cursor_seek(c, &KEY(inode, KEY_DIR_INDEX, index), &what);
			continue;
		}
		index = e.index + 1;
		l->bytes += e.name_len;
		ret = fn(ctx, &e);
		if (ret)
			return ret;
		ret = cursor_next(c, &what);
	}
}

/* Lists the entries whose DIR_INDEX items are lost. @return 0; what a callback returned; -ENOMEM */
static int list_lost(struct cursor *c, uint64_t inode, struct dir_lost *l, btrkit_dir_entry_fn fn, btrkit_lost_fn lost,
		     void *ctx, struct btrkit_error *err)
{
	struct btrkit_dir_entry e;
	int ret = 0;

	while (!ret) {
		struct btrkit_error what = BTRKIT_ERROR_INIT;

		ret = dir_lost_next(c, inode, l, &e, &what);
		if (ret == 1)
			return 0;
		if (ret == -ENOMEM)
			return err_nomem(err);
		ret = ret ? lost(ctx, &what) : fn(ctx, &e);
	}
	return ret;
}

/* Opens a directory, of which only the inode may be lost. @return 0; what @lost returned; <0 */
static int open_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, struct cursor *c, btrkit_lost_fn lost,
		       void *ctx, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct inode_item item;
	struct subvolume s = { 0 };
	int ret = subvolume_get(fs, root, &s, err);

	cursor_init(c, fs, &s.root);
	if (ret)
		return ret;
	ret = inode_read(c, inode, &item, &what);
	if (!ret)
		return S_ISDIR(item.mode) ? 0 : err_system(err, ENOTDIR, "inode %" PRIu64, inode);
	if (ret == -ENOENT || ret == -ENOMEM)
		return err_pass(err, &what, ret);
	text_add(what.message, sizeof(what.message), "; inode %" PRIu64 " is missing", inode);
	return lost(ctx, &what);
}

int btrkit_inode_entries_around(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_dir_entry_fn fn,
				btrkit_lost_fn lost, void *ctx, struct btrkit_error *err)
{
	struct dir_lost l = { 0 };
	struct cursor c;
	int ret = open_around(fs, root, inode, &c, lost, ctx, err);

	if (!ret)
		ret = list_around(&c, inode, &l, fn, lost, ctx, err);
	if (ret >= 0 && l.ranges.n)
		ret = list_lost(&c, inode, &l, fn, lost, ctx, err);
	dir_lost_release(&l);
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

int btrkit_inode_entries(struct btrkit_fs *fs, uint64_t root, uint64_t inode, btrkit_dir_entry_fn fn, void *ctx,
			 struct btrkit_error *err)
{
	return list_entries(fs, root, inode, &KEY(inode, KEY_DIR_INDEX, 0), fn, ctx, err);
}

int btrkit_inode_entries_after(struct btrkit_fs *fs, uint64_t root, uint64_t inode, uint64_t after,
			       btrkit_dir_entry_fn fn, void *ctx, struct btrkit_error *err)
{
	const struct btrkit_key from =
		after == UINT64_MAX ? KEY(inode, KEY_DIR_INDEX + 1, 0) : KEY(inode, KEY_DIR_INDEX, after + 1);

	return list_entries(fs, root, inode, &from, fn, ctx, err);
}
