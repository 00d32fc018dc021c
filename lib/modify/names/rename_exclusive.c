// SPDX-License-Identifier: LGPL-2.1-or-later
/* Renames of subvolumes, and between subvolumes. */
#include "lib/modify/names/rename.h"

#include <errno.h>
#include <string.h>

#include "lib/base/err.h"

static int find_both(struct renaming *r, struct btrkit_error *err)
{
	int ret = rename_find(r, true, err);

	if (!ret && !r->from.there)
		ret = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)r->from.name.len, r->from.name.bytes);
	if (!ret && r->to.there && r->flags & BTRKIT_RENAME_NOREPLACE)
		ret = err_system(err, EEXIST, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	if (!ret && !r->to.there && r->flags & BTRKIT_RENAME_EXCHANGE)
		ret = err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	return ret;
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
		ret = rename_check_loops(r, true, err);
	if (!ret)
		ret = rename_check(r, err);
	if (ret)
		return ret;
	ret = rename_do(r, orphan, err);
	/* Any failure halfway is fatal. */
	if (ret && op_has_changed(r->op))
		failure_note(r->op->txn->failure, ret, err);
	return ret;
}

int rename_exclusive(struct btrkit_txn *txn, const struct btrkit_place *from, const struct btrkit_place *to,
		     unsigned flags, struct btrkit_error *err)
{
	const struct ticket_need need = { .items = RENAME_ITEMS, .bytes = rename_bytes(from, to) };
	static const struct ticket_exclusive exclusive = { .blocks = 8 * ROOTS_BLOCKS };
	struct renaming r = { .flags = flags,
			      .dir = { { .inode = from->dir }, { .inode = to->dir } },
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
		ret = find_both(&r, err);
	if (!ret && !same(&r.from, &r.to))
		ret = rename_found(&r, &orphan, err);
	delayed_reader_release(&r.op[1].reader);
	ret = op_end_exclusive(r.op, ret, err);
	return ret || !orphan ? ret : remove_orphan(txn, to->root, r.to.in.inode, err);
}
