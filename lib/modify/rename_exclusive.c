// SPDX-License-Identifier: LGPL-2.1-or-later
/* Renames of subvolumes, and between subvolumes. */
#include "lib/modify/rename.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/fs/subvolume.h"

#define DEPTH_MAX (1u << 20)

/* A directory or an inode with a name. */
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

static int find_side(struct rename_side *s, struct btrkit_error *err)
{
	int ret = name_find(s->op, s->dir, &s->name, &s->entry, err);

	s->there = !ret;
	if (ret)
		return ret < 0 ? ret : 0;
	s->what = RENAME_INODE;
	if (s->entry.location.type == KEY_INODE_ITEM)
		return rename_get_inode(s, err);
	ret = name_is_subvolume(s->op, s->dir, &s->name, &s->entry, err);
	s->what = ret ? RENAME_PLACE : RENAME_SUBVOLUME;
	if (ret)
		return ret < 0 ? ret : 0;
	return enter_subvolume(s, err);
}

static int find_dir(struct rename_side *s, uint64_t inode, struct btrkit_error *err)
{
	const int ret = op_inode_get(s->op, inode, s->dir, err);

	return ret ? ret : op_check_is_dir(s->dir, err);
}

static int find_both(struct renaming *r, const struct btrkit_place *from, const struct btrkit_place *to,
		     struct btrkit_error *err)
{
	int ret = find_dir(&r->from, from->dir, err);

	if (!ret && r->to.dir != r->from.dir)
		ret = find_dir(&r->to, to->dir, err);
	if (!ret)
		ret = find_side(&r->from, err);
	if (!ret)
		ret = find_side(&r->to, err);
	if (!ret && !r->from.there)
		ret = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)r->from.name.len, r->from.name.bytes);
	if (!ret && r->to.there && r->flags & BTRKIT_RENAME_NOREPLACE)
		ret = err_system(err, EEXIST, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	if (!ret && !r->to.there && r->flags & BTRKIT_RENAME_EXCHANGE)
		ret = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	return ret;
}

/* Gets the directory that a side leads to, if it exists and is one. */
static bool top_of(const struct rename_side *s, struct spot *ret)
{
	if (!s->there || s->what == RENAME_PLACE || (s->what == RENAME_INODE && s->entry.type != FT_DIR))
		return false;
	*ret = s->what == RENAME_SUBVOLUME ? (struct spot){ s->entry.location.objectid, OID_FIRST_FREE } :
					     (struct spot){ s->op->t->id, s->in.inode };
	return true;
}

/* Moves @at to its parent directory, across subvolumes. @return 0; 1: there is none; <0 */
static int parent(const struct op *op, struct spot *at, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char name[NAME_LEN_MAX];
	struct roots_place place;
	struct op own;
	int ret;

	if (at->inode != OID_FIRST_FREE) {
		ret = op_join(op, at->root, &own, err);
		if (!ret)
			ret = rename_parent(&own, at->inode, &at->inode, err);
		delayed_reader_release(&own.reader);
		return ret;
	}
	if (at->root == OID_FS_TREE)
		return 1;
	sync_rdlock_trees(&op->txn->sync);
	ret = roots_find(op->txn, at->root, &place, name, &what);
	sync_rdunlock_trees(&op->txn->sync);
	if (!ret)
		*at = (struct spot){ place.parent, place.dir };
	return ret == -ENOENT ? 1 : err_pass(err, &what, ret);
}

/* Whether the directory of one side is the other side, or is below it. @return 0: it is not; 1: it is; <0 */
static int is_below(const struct rename_side *dir, const struct rename_side *what, struct btrkit_error *err)
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
		ret = parent(dir->op, &at, err);
	}
	return ret < 0 ? ret : 0;
}

static int check_loops(const struct renaming *r, struct btrkit_error *err)
{
	int ret = is_below(&r->to, &r->from, err);

	if (ret)
		return ret < 0 ? ret : rename_loops(r, false, err);
	ret = is_below(&r->from, &r->to, err);
	return ret == 1 ? rename_loops(r, true, err) : ret;
}

/* Two names of the same inode, or the same name twice: nothing is renamed. */
static bool same(const struct rename_side *a, const struct rename_side *b)
{
	return b->there && a->op == b->op && !key_cmp(&a->entry.location, &b->entry.location) &&
	       (a->what == RENAME_INODE ||
		(a->dir == b->dir && a->name.len == b->name.len && !memcmp(a->name.bytes, b->name.bytes, a->name.len)));
}

static int rename_found(struct renaming *r, bool *orphan, struct btrkit_error *err)
{
	int ret = 0;

	if (r->from.dir != r->to.dir)
		ret = check_loops(r, err);
	if (!ret)
		ret = rename_check(r, err);
	if (ret)
		return ret;
	ret = rename_do(r, orphan, err);
	return failure_note_any(r->op->txn->failure, ret, err);
}

int rename_exclusive(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		     unsigned flags, struct btrkit_error *err)
{
	const struct ticket_need need = { .items = RENAME_ITEMS, .bytes = rename_bytes(from, to) };
	static const struct ticket_exclusive exclusive = { .blocks = 8 * ROOTS_BLOCKS };
	struct renaming r = { .flags = flags,
			      .from.name = { from->name, from->len },
			      .to.name = { to->name, to->len } };
	bool orphan = false;
	int ret = op_begin_exclusive(r.op, txn, from->root, &need, &exclusive, err);

	if (ret)
		return ret;
	r.from.op = r.to.op = r.op;
	r.from.dir = r.to.dir = &r.dir[0];
	if (from->root != to->root || from->dir != to->dir)
		r.to.dir = &r.dir[1];
	if (from->root != to->root) {
		r.to.op = &r.op[1];
		ret = op_join(r.op, to->root, r.to.op, err);
	}
	if (!ret)
		ret = find_both(&r, from, to, err);
	if (!ret && !same(&r.from, &r.to))
		ret = rename_found(&r, &orphan, err);
	delayed_reader_release(&r.op[1].reader);
	ret = op_end_exclusive(r.op, ret, err);
	return ret || !orphan ? ret : remove_orphan(txn, to->root, r.to.in.inode, err);
}
