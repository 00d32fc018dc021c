// SPDX-License-Identifier: LGPL-2.1-or-later
/* Deletion of subvolumes: first the name, then the contents step by step. */
#include "lib/modify/subvolume_remove.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <btrkit/subvolume_modify.h>

#include "lib/base/err.h"
#include "lib/fs/subvolume.h"
#include "lib/modify/names/remove.h"

/* References that change in one step, about. */
#define REFS_AT_A_TIME 512u

/* A subvolume that is about to lose its name. */
struct removing {
	struct op op;
	uint64_t id;
	struct roots_place place;
	char name[NAME_LEN_MAX];
	struct op_inode dir;
	const struct roots_place *empty_at; /* it must be empty and at this place; NULL: no condition */
};

/* Reports the error that Linux would. */
static int refuse(const struct btrkit_subvolume_deletion *d, struct btrkit_error *err)
{
	switch (d->hold) {
	case BTRKIT_SUBVOLUME_DELETABLE:
		return 0;
	case BTRKIT_SUBVOLUME_TOP_LEVEL:
		return err_set(err, BTRKIT_INVALID, "cannot delete the top-level subvolume");
	case BTRKIT_SUBVOLUME_DEFAULT:
		return err_system(err, EPERM, "subvolume %" PRIu64 " is the default subvolume", d->id);
	case BTRKIT_SUBVOLUME_IN_READ_ONLY:
		return err_system(err, EROFS, "subvolume %" PRIu64 ", which contains %" PRIu64, d->other, d->id);
	case BTRKIT_SUBVOLUME_NOWHERE:
		return err_set(err, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " is not in any directory", d->id);
	case BTRKIT_SUBVOLUME_HOLDS:
		return err_system(err, ENOTEMPTY, "subvolume %" PRIu64 " is nested in %" PRIu64, d->other, d->id);
	}
	return err_set(err, BTRKIT_INVALID, "subvolume %" PRIu64 " cannot be deleted", d->id);
}

static int check_subvolume(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_subvolume_deletion d = { .id = id };
	int ret;

	sync_rdlock_trees(&txn->sync);
	ret = btrkit_subvolumes_deletable(txn->fs, &d, 1, err);
	sync_rdunlock_trees(&txn->sync);
	return ret ? ret : refuse(&d, err);
}

/* Finds its current place. */
static int find_place(struct removing *r, struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct subvolume s;
	int ret;

	sync_rdlock_trees(&txn->sync);
	ret = subvolume_get(txn->fs, r->id, &s, err);
	if (!ret)
		ret = roots_find(txn, r->id, &r->place, r->name, err);
	sync_rdunlock_trees(&txn->sync);
	return ret;
}

/* Checks its root directory, which Linux does first. */
static int check_own_dir(struct removing *r, struct btrkit_error *err)
{
	struct op_inode in;
	struct op own;
	int ret;

	ret = op_join(&r->op, r->id, &own, err);
	if (!ret)
		ret = op_inode_get(&own, OID_FIRST_FREE, &in, err);
	delayed_reader_release(&own.reader);
	if (!ret)
		ret = op_check_fixed(&in, err);
	if (!ret && r->empty_at && le64_get(in.item.size))
		ret = err_system(err, ENOTEMPTY, "subvolume %" PRIu64, r->id);
	return ret;
}

static bool lies_there(const struct removing *r)
{
	const struct roots_place *at = r->empty_at;

	return !at || (r->place.parent == at->parent && r->place.dir == at->dir && r->place.name.len == at->name.len &&
		       !memcmp(r->place.name.bytes, at->name.bytes, at->name.len));
}

/* Checks that the directory entry leads to the subvolume. */
static int check_entry(struct removing *r, struct btrkit_error *err)
{
	struct name_entry entry;
	int ret;

	ret = op_inode_get(&r->op, r->place.dir, &r->dir, err);
	if (!ret)
		ret = op_check_dir(&r->op, &r->dir, INODE_APPEND, err);
	if (!ret)
		ret = name_find(&r->op, &r->dir, &r->place.name, &entry, err);
	if (ret < 0)
		return ret;
	if (ret || entry.location.type != KEY_ROOT_ITEM || entry.location.objectid != r->id)
		return err_corrupt(err, NULL, "directory %" PRIu64 " of subvolume %" PRIu64
					      " has no entry for subvolume %" PRIu64,
				   r->place.dir, r->place.parent, r->id);
	return 0;
}

/* Marks the tree as deleted: whatever happens, it will be dropped. */
static int mark_dead(struct removing *r, struct btrkit_error *err)
{
	struct btrkit_txn *txn = r->op.txn;
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct edit_tree *t = NULL, *roots;
	struct roots_item item;
	int ret;

	ret = roots_get(txn, r->id, &item, err);
	if (!ret)
		ret = roots_unlink(txn, r->id, r->place.parent, err);
	if (!ret)
		ret = roots_drop_uuids(txn, r->id, &item.d, err);
	if (ret)
		return ret;
	item.d.flags = le64_put(le64_get(item.d.flags) | ROOT_SUBVOL_DEAD);
	item.d.refs = le32_put(0);
	memset(&item.d.drop_progress, 0, sizeof(item.d.drop_progress));
	item.d.drop_level = 0;
	ret = roots_put(txn, &item, &own);
	if (!ret)
		ret = txn_tree(txn, OID_ROOT_TREE, &roots, &own);
	if (!ret)
		ret = edit_insert(roots, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, r->id), "", 0, &own);
	ret = ret == -EEXIST ? 0 : err_pass(err, &own, ret);
	t = overlay_open_tree(txn->overlay, r->id);
	if (t)
		cursor_release(&t->c);
	delayed_forget_tree(r->op.d, r->id);
	return ret;
}

static int take_name(struct removing *r, struct btrkit_txn *txn, struct btrkit_error *err)
{
	static const struct ticket_need need = { .items = 4, .bytes = 64, .removes = true };
	static const struct ticket_exclusive exclusive = { .blocks = 8 * ROOTS_BLOCKS };
	const uint64_t parent = r->place.parent;
	int ret;

	ret = op_begin_exclusive(&r->op, txn, parent, &need, &exclusive, err);
	if (ret)
		return ret;
	/* It may have been moved meanwhile. */
	ret = find_place(r, txn, err);
	if (!ret && (r->place.parent != parent || !lies_there(r)))
		ret = err_set(err, BTRKIT_NOT_FOUND, "subvolume %" PRIu64 " has been moved", r->id);
	if (!ret)
		ret = check_entry(r, err);
	if (!ret)
		ret = check_own_dir(r, err);
	if (!ret)
		ret = check_subvolume(txn, r->id, err);
	if (!ret)
		ret = name_remove(&r->op, &r->dir, &r->place.name, r->place.index, err);
	if (!ret)
		ret = op_inode_put(&r->op, &r->dir, err);
	if (!ret) {
		sync_lock_trees(&r->op.txn->sync);
		ret = mark_dead(r, err);
		sync_unlock_trees(&r->op.txn->sync);
		if (ret)
			failure_note(r->op.txn->failure, ret, err);
	}
	return op_end_exclusive(&r->op, ret, err);
}

/* Deletes the items of a tree whose blocks have all been freed. */
static int forget(struct btrkit_txn *txn, const struct btrkit_key *key, struct btrkit_error *err)
{
	struct edit_tree *roots;
	int ret = txn_tree(txn, OID_ROOT_TREE, &roots, err);

	if (!ret)
		ret = edit_delete(roots, key, err);
	if (!ret)
		ret = edit_delete(roots, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, key->objectid), err);
	return ret == -ENOENT ? err_corrupt(err, NULL, "root item or orphan item of a dropped tree is missing") : ret;
}

/* Records in the ROOT_ITEM how far dropping has come. */
static int note_progress(struct btrkit_txn *txn, struct roots_item *item, const struct tree_drop *d,
			 struct btrkit_error *err)
{
	item->d.drop_progress = key_put(&d->progress);
	item->d.drop_level = d->level;
	return roots_put(txn, item, err);
}

static int drop_some(struct btrkit_txn *txn, struct tree_drop *d, uint64_t refs, bool *done,
		     struct btrkit_error *err)
{
	struct roots_item item;
	int ret;

	ret = roots_get_dead(txn, d->id, &item, err);
	if (ret)
		return ret;
	/* Continue where a previous step, or a previous mount, stopped. */
	d->progress = key_get(&item.d.drop_progress);
	d->level = item.d.drop_level;
	ret = tree_drop_some(txn->overlay, d, refs, err);
	*done = ret == 1;
	if (ret < 0)
		return ret;
	return *done ? forget(txn, &item.key, err) : note_progress(txn, &item, d, err);
}

int subvolume_drop_some(struct btrkit_txn *txn, struct tree_drop *d, uint64_t refs, bool *done,
			struct btrkit_error *err)
{
	const uint64_t excess = tree_drop_excess(txn->fs->geometry.nodesize);
	const struct ticket_need need = { .removes = true };
	const struct ticket_exclusive exclusive = {
		.blocks = 3 * ROOTS_BLOCKS,
		.refs = refs + excess,
		.data = refs + excess / 2,
	};
	struct op op;
	int ret = op_begin_nowhere(&op, txn, &need, &exclusive, err);

	if (ret)
		return ret;
	sync_lock_trees(&op.txn->sync);
	ret = drop_some(txn, d, refs, done, err);
	sync_unlock_trees(&op.txn->sync);
	return op_end_exclusive(&op, ret, err);
}

/*
 * Drops the whole tree, in operations of their own, so that others can run and the transaction can be committed in
 * between.
 */
static int drop_all(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	struct tree_drop d = { .id = id };
	bool done = false;
	int ret = 0;

	while (!ret && !done)
		ret = subvolume_drop_some(txn, &d, REFS_AT_A_TIME, &done, &own);
	/* Another thread has dropped it to its end. */
	return ret == -ENOENT ? 0 : err_pass(err, &own, ret);
}

static int remove_name_of(struct btrkit_txn *txn, uint64_t id, const struct roots_place *empty_at,
			  struct btrkit_error *err)
{
	struct removing r = { .id = id, .empty_at = empty_at };
	int ret;

	/* The place is read from the trees without waiting, so these must be intact. */
	ret = failure_check(txn->failure, err);
	if (!ret)
		ret = roots_check_quotas(txn, err);
	if (ret)
		return ret;
	if (id == OID_FS_TREE)
		return err_set(err, BTRKIT_INVALID, "cannot delete the top-level subvolume");
	/* Other conditions are checked in take_name(), when they can no longer change. */
	ret = find_place(&r, txn, err);
	return ret ? ret : take_name(&r, txn, err);
}

int subvolume_take_name(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	return remove_name_of(txn, id, NULL, err);
}

int subvolume_remove_empty(struct btrkit_txn *txn, uint64_t id, const struct roots_place *at, struct btrkit_error *err)
{
	int ret = remove_name_of(txn, id, at, err);

	return ret ? ret : drop_all(txn, id, err);
}

int btrkit_txn_subvolume_delete(struct btrkit_txn *txn, uint64_t id, struct btrkit_error *err)
{
	int ret = subvolume_take_name(txn, id, err);

	return ret ? ret : drop_all(txn, id, err);
}

/* Finds the next deleted subvolume from @from on. @return 0; 1: there is none; <0 */
static int next_dead(struct btrkit_txn *txn, uint64_t from, uint64_t *ret, struct btrkit_error *err)
{
	struct root_item item;
	struct tree_root root;
	struct cursor c;
	int r;

	sync_rdlock_trees(&txn->sync);
	cursor_init(&c, txn->fs, &txn->fs->root_tree);
	for (r = cursor_seek(&c, &KEY(OID_ORPHAN, KEY_ORPHAN_ITEM, from), err); !r; r = cursor_next(&c, err)) {
		if (c.item.key.objectid != OID_ORPHAN || c.item.key.type != KEY_ORPHAN_ITEM)
			r = 1;
		if (r)
			break;
		if (!oid_is_file_tree(c.item.key.offset))
			continue;
		*ret = c.item.key.offset;
		r = fs_try_root(txn->fs, *ret, &root, &item, err);
		if (r < 0 || (!r && !item.refs))
			break;
		r = 0;
	}
	cursor_release(&c);
	sync_rdunlock_trees(&txn->sync);
	return r;
}

int btrkit_txn_subvolumes_clean(struct btrkit_txn *txn, uint64_t *count, struct btrkit_error *err)
{
	uint64_t id = 0, n = 0;
	int ret = failure_check(txn->failure, err);

	if (!ret)
		ret = roots_check_quotas(txn, err);
	if (ret)
		return ret;
	while (!(ret = next_dead(txn, id, &id, err))) {
		ret = drop_all(txn, id, err);
		if (ret)
			break;
		id++;
		n++;
	}
	if (count)
		*count = n;
	return ret == 1 ? 0 : ret;
}
