// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/names/rename.h"

#include <errno.h>

#include "lib/base/err.h"

static bool same_entry(bool there, const struct name_entry *a, const struct rename_side *now)
{
	return there == now->there && (!there || !key_cmp(&a->location, &now->entry.location));
}

/* Locks both directories and the inodes that have the names in them. */
static int lock_all(struct renaming *r, struct btrkit_error *err)
{
	uint64_t inodes[4] = { r->dir[0].inode, r->dir[1].inode };
	struct rename_side from, to;
	unsigned n = 2;
	int ret;

	delayed_lock(r->op->t, inodes, 2, &r->op->locks);
	do {
		ret = rename_find(r, false, err);
		if (ret)
			return ret;
		from = r->from;
		to = r->to;
		n = 2;
		if (from.there)
			inodes[n++] = from.entry.location.objectid;
		if (to.there)
			inodes[n++] = to.entry.location.objectid;
		delayed_unlock(&r->op->locks);
		delayed_lock(r->op->t, inodes, n, &r->op->locks);
		ret = rename_find(r, false, err);
		if (ret)
			return ret;
	} while (!same_entry(from.there, &from.entry, &r->from) || !same_entry(to.there, &to.entry, &r->to));
	if (!r->from.there)
		return err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)from.name.len, from.name.bytes);
	ret = rename_get_inode(&r->from, err);
	return ret || !r->to.there ? ret : rename_get_inode(&r->to, err);
}

/* Refuses to move a directory below itself. Call with the lock of renames, and no others. */
static int check_loops(struct renaming *r, struct btrkit_error *err)
{
	const unsigned in_the_way = BTRKIT_RENAME_NOREPLACE, missing = BTRKIT_RENAME_EXCHANGE;
	const uint64_t dirs[] = { r->dir[0].inode, r->dir[1].inode };
	int ret;

	delayed_lock(r->op->t, dirs, 2, &r->op->locks);
	ret = rename_find(r, false, err);
	delayed_unlock(&r->op->locks);
	/* Other reasons to fail are checked after everything is locked. */
	if (ret || !r->from.there || r->flags & (r->to.there ? in_the_way : missing))
		return ret;
	return rename_check_loops(r, false, err);
}

/* No other thread moves directories meanwhile, but the names may lead elsewhere by the time everything is locked. */
static int lock_across(struct renaming *r, struct btrkit_error *err)
{
	struct rename_side from, to;
	int ret;

	for (;;) {
		ret = check_loops(r, err);
		if (ret)
			return ret;
		from = r->from;
		to = r->to;
		ret = lock_all(r, err);
		if (ret || (same_entry(from.there, &from.entry, &r->from) && same_entry(to.there, &to.entry, &r->to)))
			return ret;
		delayed_unlock(&r->op->locks);
	}
}

static int rename_locked(struct renaming *r, bool *orphan, struct btrkit_error *err)
{
	int ret = r->to.dir == r->from.dir ? lock_all(r, err) : lock_across(r, err);

	if (!ret && r->to.there && r->flags & BTRKIT_RENAME_NOREPLACE)
		return err_system(err, EEXIST, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	/* Two names of the same inode are left alone, as POSIX demands. */
	if (!ret && r->to.there && r->from.in.inode == r->to.in.inode)
		return 0;
	if (!ret)
		ret = rename_check(r, err);
	return ret ? ret : rename_do(r, orphan, err);
}

/* @return 0; RENAME_EXCLUSIVE; <0 */
static int rename_inodes(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
			 unsigned flags, struct btrkit_error *err)
{
	/* References, entries and indices of two old and two new names, and four inodes. */
	const struct ticket_need need = { .items = RENAME_ITEMS, .bytes = rename_bytes(from, to) };
	struct renaming r = { .flags = flags,
			      .dir = { { .inode = from->dir }, { .inode = to->dir } },
			      .from.name = { from->name, from->len },
			      .to.name = { to->name, to->len } };
	bool orphan = false;
	int ret = op_begin(r.op, txn, from->root, &need, err);

	if (ret)
		return ret;
	r.from.op = r.to.op = r.op;
	r.from.dir = &r.dir[0];
	r.to.dir = from->dir == to->dir ? &r.dir[0] : &r.dir[1];
	if (from->dir != to->dir)
		sync_lock_renames(&txn->sync);
	ret = rename_locked(&r, &orphan, err);
	/* Release it first: threads waiting for it are inside the gate, which may have to be closed by op_end(). */
	if (from->dir != to->dir)
		sync_unlock_renames(&txn->sync);
	ret = op_end(r.op, ret, err);
	return ret || !orphan ? ret : remove_orphan(txn, to->root, r.to.in.inode, err);
}

/* Like Linux, looks up the old name before it refuses a new name that is too long. */
static int verify_names(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
			struct btrkit_error *err)
{
	const struct name old = { from->name, from->len }, new = { to->name, to->len };
	int ret = name_check_in(txn, from->root, from->dir, &old, err), found = 0;
	struct btrkit_found there;

	if (!ret)
		ret = name_check_in(txn, to->root, to->dir, &new, err);
	if (ret == -ENAMETOOLONG && old.len <= NAME_LEN_MAX)
		found = btrkit_txn_lookup(txn, from->root, from->dir, old.bytes, old.len, &there, err);
	return found ? found : ret;
}

int btrkit_txn_rename(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		      unsigned flags, struct btrkit_error *err)
{
	int ret;

	if (flags & ~(unsigned)(BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE) ||
	    flags == (BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE))
		return err_set(err, BTRKIT_INVALID, "invalid rename flags 0x%x", flags);
	ret = verify_names(txn, from, to, err);
	if (!ret)
		ret = from->root == to->root ? rename_inodes(txn, from, to, flags, err) : RENAME_EXCLUSIVE;
	return ret == RENAME_EXCLUSIVE ? rename_exclusive(txn, from, to, flags, err) : ret;
}
