// SPDX-License-Identifier: LGPL-2.1-or-later
/* Renames: finds what has the names, and whether one would get into itself. */
#include <errno.h>
#include <inttypes.h>

#include "lib/base/err.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/names/rename.h"

/* Limit for the ancestors of a directory; only damaged filesystems have more. */
#define DEPTH_MAX (1u << 20)

/* A directory of a subvolume. */
struct spot {
	uint64_t root, inode;
};

/* Reads the subvolume that a side leads to. */
static int enter_subvolume(struct rename_side *s, struct btrkit_error *err)
{
	const uint64_t id = s->entry.location.objectid;
	struct subvolume subvolume;
	struct op own;
	int ret;

	ret = op_join(s->op, id, &own, err);
	if (!ret)
		ret = op_inode_get(&own, OID_FIRST_FREE, &s->in, err);
	delayed_reader_release(&own.reader);
	if (ret)
		return ret;
	s->read_only = own.t->read_only;
	sync_rdlock_trees(&own.txn->sync);
	ret = subvolume_get(own.txn->fs, id, &subvolume, err);
	sync_rdunlock_trees(&own.txn->sync);
	/* The offset in the entry of a snapshot may be wrong. */
	if (!ret)
		s->entry.location.offset = subvolume.root.key_offset;
	return ret;
}

static int find_side(struct rename_side *s, bool exclusive, struct btrkit_error *err)
{
	int ret = name_find(s->op, s->dir, &s->name, &s->entry, err);

	s->there = !ret;
	if (ret)
		return ret < 0 ? ret : 0;
	s->what = RENAME_INODE;
	if (!exclusive)
		return s->entry.location.type == KEY_INODE_ITEM ? 0 : RENAME_EXCLUSIVE;
	if (s->entry.location.type == KEY_INODE_ITEM)
		return rename_get_inode(s, err);
	ret = name_is_subvolume(s->op, s->dir, &s->name, &s->entry, err);
	s->what = ret ? RENAME_PLACE : RENAME_SUBVOLUME;
	if (ret)
		return ret < 0 ? ret : 0;
	return enter_subvolume(s, err);
}

int rename_find(struct renaming *r, bool exclusive, struct btrkit_error *err)
{
	int ret = op_inode_get(r->from.op, r->from.dir->inode, r->from.dir, err);

	if (!ret && r->to.dir != r->from.dir)
		ret = op_inode_get(r->to.op, r->to.dir->inode, r->to.dir, err);
	if (!ret)
		ret = op_check_is_dir(r->from.dir, err);
	if (!ret)
		ret = op_check_is_dir(r->to.dir, err);
	if (!ret)
		ret = find_side(&r->from, exclusive, err);
	return ret ? ret : find_side(&r->to, exclusive, err);
}

/* Gets the directory that a side leads to, if it exists and is one. */
static bool top_of(const struct rename_side *s, struct spot *ret)
{
	const uint64_t found = s->entry.location.objectid;

	/* Only a directory can be above something. The type in the entry is verified before anything is renamed. */
	if (!s->there || s->what == RENAME_PLACE || (s->what == RENAME_INODE && s->entry.type != FT_DIR))
		return false;
	*ret = s->what == RENAME_SUBVOLUME ? (struct spot){ found, OID_FIRST_FREE } :
					     (struct spot){ s->op->t->id, found };
	return true;
}

/* Finds the parent of a directory in its subvolume. Only renames change it. @return 0; -ENOENT; <0 */
static int parent_inode(struct op *op, uint64_t inode, uint64_t *ret, struct btrkit_error *err)
{
	struct item item;
	int r;

	delayed_lock(op->t, &inode, 1, &op->locks);
	r = delayed_seek(op->t, &op->reader, &KEY(inode, KEY_INODE_REF, 0), &item, err);
	if (!r && item.key.type != KEY_INODE_REF)
		r = 1;
	if (r == 1)
		r = err_set(err, BTRKIT_NOT_FOUND, "directory %" PRIu64 " has no parent", inode);
	if (!r)
		*ret = item.key.offset;
	delayed_unlock(&op->locks);
	return r;
}

/* Finds the directory that a subvolume is in. @return 0; 1: it is in none; <0 */
static int parent_subvolume(const struct op *op, struct spot *at, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char name[NAME_LEN_MAX];
	struct roots_place place;
	int ret;

	sync_rdlock_trees(&op->txn->sync);
	ret = roots_find(op->txn, at->root, &place, name, &what);
	sync_rdunlock_trees(&op->txn->sync);
	if (!ret)
		*at = (struct spot){ place.parent, place.dir };
	return ret == -ENOENT ? 1 : err_pass(err, &what, ret);
}

/* Moves @at to its parent directory; if exclusive, across subvolumes. @return 0; 1: there is none; <0 */
static int parent(struct op *op, bool exclusive, struct spot *at, struct btrkit_error *err)
{
	struct op own;
	int ret;

	if (at->inode == OID_FIRST_FREE)
		return !exclusive || at->root == OID_FS_TREE ? 1 : parent_subvolume(op, at, err);
	if (!exclusive)
		return parent_inode(op, at->inode, &at->inode, err);
	ret = op_join(op, at->root, &own, err);
	if (!ret)
		ret = parent_inode(&own, at->inode, &at->inode, err);
	delayed_reader_release(&own.reader);
	return ret;
}

/* Whether the directory of one side is the other side, or is below it. @return 0: it is not; 1: it is; <0 */
static int is_below(const struct rename_side *dir, const struct rename_side *what, bool exclusive,
		    struct btrkit_error *err)
{
	struct spot at = { dir->op->t->id, dir->dir->inode }, top;
	int ret = 0;

	if (!top_of(what, &top))
		return 0;
	for (unsigned depth = 0; !ret; depth++) {
		if (at.root == top.root && at.inode == top.inode)
			return 1;
		if (depth == DEPTH_MAX)
			return err_corrupt(err, NULL, "directory %" PRIu64 " is below itself", at.inode);
		ret = parent(dir->op, exclusive, &at, err);
	}
	return ret < 0 ? ret : 0;
}

/* The error for it. @above: what has the new name is an ancestor of the other. */
static int refuse(const struct renaming *r, bool above, struct btrkit_error *err)
{
	if (above && !(r->flags & BTRKIT_RENAME_EXCHANGE))
		return err_system(err, ENOTEMPTY, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	return err_set(err, BTRKIT_INVALID, "cannot move a directory into itself");
}

int rename_check_loops(const struct renaming *r, bool exclusive, struct btrkit_error *err)
{
	int ret = is_below(&r->to, &r->from, exclusive, err);

	if (ret)
		return ret < 0 ? ret : refuse(r, false, err);
	ret = is_below(&r->from, &r->to, exclusive, err);
	return ret == 1 ? refuse(r, true, err) : ret;
}
