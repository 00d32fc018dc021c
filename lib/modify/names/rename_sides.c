// SPDX-License-Identifier: LGPL-2.1-or-later
/* Renames: checks and changes, once both sides are known. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/names/rename.h"

static bool is_dir(const struct rename_side *s)
{
	return s->what != RENAME_INODE || S_ISDIR(op_inode_mode(&s->in));
}

int rename_get_inode(struct rename_side *s, struct btrkit_error *err)
{
	const int ret = op_inode_get(s->op, s->entry.location.objectid, &s->in, err);

	return ret ? ret : name_check_type(s->op, s->dir, &s->name, &s->entry, &s->in, err);
}

/* Checks whether the name of a side may be removed. @directory: the side must be a directory, otherwise it must not. */
static int verify_leaves(const struct rename_side *s, bool directory, struct btrkit_error *err)
{
	int ret;

	if (s->what != RENAME_PLACE)
		return remove_check_name(s->op, s->dir, &s->in, directory, err);
	ret = op_check_dir(s->op, s->dir, INODE_APPEND, err);
	if (!ret && !directory)
		ret = err_system(err, EISDIR, "\"%.*s\"", (int)s->name.len, s->name.bytes);
	return ret;
}

/* Checks whether a side may be moved to another directory. Linux counts that as a write to the moved directory. */
static int check_moves(const struct rename_side *s, struct btrkit_error *err)
{
	return s->what == RENAME_SUBVOLUME && s->read_only ? err_system(err, EROFS, "subvolume \"%.*s\"",
									(int)s->name.len, s->name.bytes) :
							     0;
}

static int no_subvolume(struct btrkit_error *err)
{
	return err_system(err, EXDEV, "only subvolumes can be moved to another subvolume");
}

static int full(const struct rename_side *s, struct btrkit_error *err)
{
	return err_system(err, ENOTEMPTY, "\"%.*s\"", (int)s->name.len, s->name.bytes);
}

/* Checks made by btrfs rather than by the VFS. */
static int check_kinds(const struct renaming *r, struct btrkit_error *err)
{
	const struct rename_side *from = &r->from, *to = &r->to;
	const bool exchange = r->flags & BTRKIT_RENAME_EXCHANGE, across = from->op != to->op;

	if (across && (from->what != RENAME_SUBVOLUME || (exchange && to->what != RENAME_SUBVOLUME)))
		return no_subvolume(err);
	/* Linux would start to exchange a stub, and fail halfway. */
	if (from->what == RENAME_PLACE || (exchange && to->what == RENAME_PLACE))
		return full(from->what == RENAME_PLACE ? from : to, err);
	if (exchange || !to->there)
		return 0;
	if (to->what == RENAME_SUBVOLUME || (to->what == RENAME_INODE && is_dir(to) && le64_get(to->in.item.size)))
		return full(to, err);
	return 0;
}

/* Checks whether one side fits under the name of the other. */
static int check_room(const struct rename_side *s, const struct rename_side *other, struct btrkit_error *err)
{
	int ret = 0;

	if (s->what == RENAME_INODE)
		ret = name_ref_fits(s->op, s->in.inode, other->dir->inode, &other->name, err);
	return ret || other->there ? ret : name_fits(other->op, other->dir, &other->name, err);
}

int rename_check(struct renaming *r, struct btrkit_error *err)
{
	const bool exchange = r->flags & BTRKIT_RENAME_EXCHANGE, moves = r->from.dir != r->to.dir;
	struct rename_side *from = &r->from, *to = &r->to;
	int ret;

	if (exchange && !to->there)
		return err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)to->name.len, to->name.bytes);
	ret = verify_leaves(from, is_dir(from), err);
	if (!ret && to->there)
		ret = verify_leaves(to, is_dir(exchange ? to : from), err);
	else if (!ret)
		ret = op_check_dir(to->op, to->dir, 0, err);
	if (!ret && moves)
		ret = check_moves(from, err);
	if (!ret && moves && exchange)
		ret = check_moves(to, err);
	if (!ret)
		ret = check_kinds(r, err);
	if (!ret)
		ret = check_room(from, to, err);
	if (!ret && exchange)
		ret = check_room(to, from, err);
	return ret;
}

static int take_subvolume(struct rename_side *s, uint64_t *index, struct btrkit_error *err)
{
	const uint64_t id = s->entry.location.objectid;
	struct btrkit_txn *txn = s->op->txn;
	char name[NAME_LEN_MAX];
	struct roots_place place;
	int ret;

	sync_lock_trees(&s->op->txn->sync);
	ret = roots_find(txn, id, &place, name, err);
	/* The directory has an entry for it, so the root tree must have a ROOT_BACKREF. */
	if (ret == -ENOENT)
		ret = err_corrupt(err, NULL, "subvolume %" PRIu64 " has a directory entry, but no ROOT_BACKREF", id);
	if (!ret && (place.parent != s->op->t->id || place.dir != s->dir->inode))
		ret = err_corrupt(err, NULL, "subvolume %" PRIu64 " is in two directories", id);
	if (!ret)
		ret = roots_unlink(txn, id, place.parent, err);
	sync_unlock_trees(&s->op->txn->sync);
	if (!ret)
		*index = place.index;
	return ret;
}

/* Removes the name of a side from its directory, and the reference to it. */
static int take_name(struct rename_side *s, struct btrkit_error *err)
{
	uint64_t index;
	int ret = 0;

	switch (s->what) {
	case RENAME_INODE:
		ret = name_ref_remove(s->op, s->in.inode, s->dir->inode, &s->name, &index, err);
		break;
	case RENAME_SUBVOLUME:
		ret = take_subvolume(s, &index, err);
		break;
	case RENAME_PLACE:
		ret = name_find_index(s->op, s->dir, &s->name, &index, err);
		break;
	}
	return ret ? ret : name_remove(s->op, s->dir, &s->name, index, err);
}

/* Gives what was at one side the name of the other. */
static int give_name(struct rename_side *from, struct rename_side *to, struct btrkit_error *err)
{
	struct roots_place place = { .parent = to->op->t->id, .dir = to->dir->inode, .name = to->name };
	int ret;

	ret = delayed_next_index(to->op->t, &to->op->reader, to->dir->inode, &place.index, err);
	if (!ret && from->what == RENAME_INODE) {
		ret = name_ref_add(to->op, from->in.inode, place.dir, &to->name, place.index, false, err);
	} else if (!ret) {
		sync_lock_trees(&to->op->txn->sync);
		ret = roots_link(to->op->txn, from->entry.location.objectid, &place, err);
		sync_unlock_trees(&to->op->txn->sync);
	}
	if (!ret)
		ret = name_add(to->op, to->dir, &to->name, &from->entry, place.index, err);
	if (ret || from->what != RENAME_INODE)
		return ret;
	from->in.item.ctime = to->op->now;
	return op_inode_put(to->op, &from->in, err);
}

int rename_do(struct renaming *r, bool *orphan, struct btrkit_error *err)
{
	struct rename_side *from = &r->from, *to = &r->to;
	const bool exchange = r->flags & BTRKIT_RENAME_EXCHANGE;
	int ret = take_name(from, err);

	if (!ret && to->there && (exchange || to->what == RENAME_PLACE))
		ret = take_name(to, err);
	else if (!ret && to->there)
		ret = remove_name(to->op, to->dir, &to->in, &to->name, orphan, err);
	if (!ret)
		ret = give_name(from, to, err);
	if (!ret && exchange)
		ret = give_name(to, from, err);
	if (!ret)
		ret = op_inode_put(from->op, from->dir, err);
	return ret || to->dir == from->dir ? ret : op_inode_put(to->op, to->dir, err);
}
