// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "lib/base/err.h"
#include "lib/modify/remove.h"

#define DEPTH_MAX (1u << 20)

/* One of the two names of a renaming. */
struct side {
	struct op_inode *dir;
	struct name name;
	struct name_entry entry;
	bool there;
	struct op_inode in; /* what has the name */
};

struct renaming {
	struct op op;
	unsigned flags;
	uint64_t dirs[2];
	struct op_inode dir[2]; /* the second is not used when it is the first */
	struct side from, to;
};

static int find_side(struct renaming *r, struct side *s, struct btrkit_error *err)
{
	int ret = name_find(&r->op, s->dir, &s->name, &s->entry, err);

	s->there = !ret;
	if (!ret && s->entry.location.type != KEY_INODE_ITEM)
		return err_system(err, EXDEV, "\"%.*s\" is a subvolume", (int)s->name.len, s->name.bytes);
	return ret < 0 ? ret : 0;
}

static int find_both(struct renaming *r, struct btrkit_error *err)
{
	int ret = op_inode_get(&r->op, r->dirs[0], &r->dir[0], err);

	if (!ret && r->to.dir != &r->dir[0])
		ret = op_inode_get(&r->op, r->dirs[1], &r->dir[1], err);
	if (!ret)
		ret = op_judge_is_dir(r->from.dir, err);
	if (!ret)
		ret = op_judge_is_dir(r->to.dir, err);
	if (!ret)
		ret = find_side(r, &r->from, err);
	return ret ? ret : find_side(r, &r->to, err);
}

static bool same_entry(bool there, const struct name_entry *a, const struct side *now)
{
	return there == now->there && (!there || !key_cmp(&a->location, &now->entry.location));
}

/* Both directories and what has the names in them, with their locks. */
static int lock_all(struct renaming *r, struct btrkit_error *err)
{
	uint64_t inodes[5] = { r->dirs[0], r->dirs[1], OID_ORPHAN };
	struct side from, to;
	unsigned n = 3;
	int ret;

	delayed_lock(r->op.t, inodes, 2, &r->op.locks);
	do {
		ret = find_both(r, err);
		if (ret)
			return ret;
		from = r->from;
		to = r->to;
		n = 3;
		if (from.there)
			inodes[n++] = from.entry.location.objectid;
		if (to.there)
			inodes[n++] = to.entry.location.objectid;
		delayed_unlock(&r->op.locks);
		delayed_lock(r->op.t, inodes, n, &r->op.locks);
		ret = find_both(r, err);
		if (ret)
			return ret;
	} while (!same_entry(from.there, &from.entry, &r->from) || !same_entry(to.there, &to.entry, &r->to));
	if (!r->from.there)
		return err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)from.name.len, from.name.bytes);
	ret = op_inode_get(&r->op, r->from.entry.location.objectid, &r->from.in, err);
	if (!ret && r->to.there)
		ret = op_inode_get(&r->op, r->to.entry.location.objectid, &r->to.in, err);
	return ret;
}

/* The directory that a directory is in. Only who renames changes that. */
static int parent_of(struct op *op, uint64_t inode, uint64_t *ret, struct btrkit_error *err)
{
	struct item item;
	int r;

	delayed_lock(op->t, &inode, 1, &op->locks);
	r = delayed_seek(op->t, &op->reader, &KEY(inode, KEY_INODE_REF, 0), &item, err);
	if (!r && item.key.type != KEY_INODE_REF)
		r = 1;
	if (r == 1)
		r = err_set(err, BTRKIT_NOT_FOUND, "directory %" PRIu64 " is in no other", inode);
	if (!r)
		*ret = item.key.offset;
	delayed_unlock(&op->locks);
	return r;
}

/* Whether @dir is below @inode, or is it. @return 0 it is not; -EINVAL; <0 */
static int judge_below(struct op *op, uint64_t dir, uint64_t inode, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned depth = 0; !ret; depth++) {
		if (dir == inode)
			return err_set(err, BTRKIT_INVALID, "a directory cannot be put into itself");
		if (dir == OID_FIRST_FREE)
			return 0;
		if (depth == DEPTH_MAX)
			return err_corrupt(err, NULL, "directory %" PRIu64 " is below itself", dir);
		ret = parent_of(op, dir, &dir, err);
	}
	return ret;
}

/* A directory that gets into another one must not get below itself. With the lock of renames, and no others. */
static int judge_loops(struct renaming *r, struct btrkit_error *err)
{
	const unsigned in_the_way = BTRKIT_RENAME_NOREPLACE, missing = BTRKIT_RENAME_EXCHANGE;
	int ret;

	delayed_lock(r->op.t, r->dirs, 2, &r->op.locks);
	ret = find_both(r, err);
	delayed_unlock(&r->op.locks);
	/* What fails for another reason first is found out when all is locked. */
	if (ret || !r->from.there || r->flags & (r->to.there ? in_the_way : missing))
		return ret;
	/* What is no directory is above none. */
	if (r->from.entry.type == FT_DIR)
		ret = judge_below(&r->op, r->dirs[1], r->from.entry.location.objectid, err);
	if (!ret && r->to.there && r->to.entry.type == FT_DIR)
		ret = judge_below(&r->op, r->dirs[0], r->to.entry.location.objectid, err);
	else
		return ret;
	if (ret == -EINVAL && !(r->flags & BTRKIT_RENAME_EXCHANGE))
		ret = err_system(err, ENOTEMPTY, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	return ret;
}

static int judge_fixed(const struct op_inode *in, struct btrkit_error *err)
{
	if (le64_get(in->item.flags) & (INODE_IMMUTABLE | INODE_APPEND))
		return err_system(err, EPERM, "inode %" PRIu64 " is immutable or append-only", in->inode);
	return 0;
}

static int judge(struct renaming *r, struct btrkit_error *err)
{
	const struct name *to = &r->to.name;
	const bool exchange = r->flags & BTRKIT_RENAME_EXCHANGE;
	int ret;

	if (exchange && !r->to.there)
		return err_set(err, BTRKIT_NOT_FOUND, "\"%.*s\"", (int)to->len, to->bytes);
	ret = op_judge_dir(r->from.dir, INODE_APPEND, err);
	if (!ret)
		ret = judge_fixed(&r->from.in, err);
	if (!ret)
		ret = op_judge_dir(r->to.dir, exchange ? INODE_APPEND : 0, err);
	if (!ret && exchange)
		ret = judge_fixed(&r->to.in, err);
	else if (!ret && r->to.there)
		ret = remove_judge(&r->op, r->to.dir, &r->to.in, S_ISDIR(op_inode_mode(&r->from.in)), err);
	if (!ret)
		ret = name_ref_fits(&r->op, r->from.in.inode, r->to.dir->inode, to, err);
	if (!ret && exchange)
		ret = name_ref_fits(&r->op, r->to.in.inode, r->from.dir->inode, &r->from.name, err);
	return ret || r->to.there ? ret : name_fits(&r->op, r->to.dir, to, err);
}

/* The name goes from a side's directory, and what had it forgets it. */
static int take_name(struct renaming *r, struct side *s, struct btrkit_error *err)
{
	uint64_t index;
	int ret;

	ret = name_ref_remove(&r->op, s->in.inode, s->dir->inode, &s->name, &index, err);
	return ret ? ret : name_remove(&r->op, s->dir, &s->name, index, err);
}

/* What was at one side gets the name of the other. */
static int give_name(struct renaming *r, struct op_inode *in, const struct name_entry *entry, struct side *s,
		     struct btrkit_error *err)
{
	uint64_t index;
	int ret;

	ret = delayed_next_index(r->op.t, &r->op.reader, s->dir->inode, &index, err);
	if (!ret)
		ret = name_ref_add(&r->op, in->inode, s->dir->inode, &s->name, index, false, err);
	if (!ret)
		ret = name_add(&r->op, s->dir, &s->name, entry, index, err);
	in->item.ctime = r->op.now;
	return ret;
}

static int put_dirs(struct renaming *r, struct btrkit_error *err)
{
	int ret = op_inode_put(&r->op, r->from.dir, err);

	return ret || r->to.dir == r->from.dir ? ret : op_inode_put(&r->op, r->to.dir, err);
}

static int exchange(struct renaming *r, struct btrkit_error *err)
{
	int ret = take_name(r, &r->from, err);

	if (!ret)
		ret = take_name(r, &r->to, err);
	if (!ret)
		ret = give_name(r, &r->from.in, &r->from.entry, &r->to, err);
	if (!ret)
		ret = give_name(r, &r->to.in, &r->to.entry, &r->from, err);
	if (!ret)
		ret = op_inode_put(&r->op, &r->from.in, err);
	if (!ret)
		ret = op_inode_put(&r->op, &r->to.in, err);
	return ret ? ret : put_dirs(r, err);
}

static int replace(struct renaming *r, bool *orphan, struct btrkit_error *err)
{
	int ret = take_name(r, &r->from, err);

	if (!ret && r->to.there)
		ret = remove_name(&r->op, r->to.dir, &r->to.in, &r->to.name, orphan, err);
	if (!ret)
		ret = give_name(r, &r->from.in, &r->from.entry, &r->to, err);
	if (!ret)
		ret = op_inode_put(&r->op, &r->from.in, err);
	return ret ? ret : put_dirs(r, err);
}

/* @orphan: what had the new name is to be removed. */
static int rename_locked(struct renaming *r, bool *orphan, struct btrkit_error *err)
{
	int ret = lock_all(r, err);

	if (!ret && r->to.there && r->flags & BTRKIT_RENAME_NOREPLACE)
		return err_system(err, EEXIST, "\"%.*s\"", (int)r->to.name.len, r->to.name.bytes);
	/* Two names of one inode stay as they are. */
	if (!ret && r->to.there && r->from.in.inode == r->to.in.inode)
		return 0;
	if (!ret)
		ret = judge(r, err);
	if (ret)
		return ret;
	if (r->flags & BTRKIT_RENAME_EXCHANGE)
		return exchange(r, err);
	return replace(r, orphan, err);
}

int btrkit_rename(struct btrkit_txn *txn, uint64_t root, const struct btrkit_place *from,
		  const struct btrkit_place *to, unsigned flags, struct btrkit_error *err)
{
	struct renaming r = { .flags = flags,
			      .dirs = { from->dir, to->dir },
			      .from.name = { from->name, from->len },
			      .to.name = { to->name, to->len } };
	struct ticket_need need;
	bool orphan = false;
	int ret;

	if (flags & ~(unsigned)(BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE) ||
	    flags == (BTRKIT_RENAME_NOREPLACE | BTRKIT_RENAME_EXCHANGE))
		return err_set(err, BTRKIT_INVALID, "flags 0x%x of a renaming", flags);
	ret = name_judge(&r.from.name, err);
	if (!ret)
		ret = name_judge(&r.to.name, err);
	if (ret)
		return ret;
	/* References, entries and indices of two names that go and two that come, and four inodes. */
	need = (struct ticket_need){ .items = 16 + REMOVE_ITEMS,
				     .bytes = (uint32_t)(8 * 64 + 4 * (from->len + to->len)) };
	ret = op_begin(&r.op, txn, root, &need, err);
	if (ret)
		return ret;
	r.from.dir = &r.dir[0];
	r.to.dir = from->dir == to->dir ? &r.dir[0] : &r.dir[1];
	if (from->dir != to->dir) {
		pthread_mutex_lock(&r.op.d->renames);
		ret = judge_loops(&r, err);
	}
	if (!ret)
		ret = rename_locked(&r, &orphan, err);
	ret = op_end(&r.op, ret);
	if (from->dir != to->dir)
		pthread_mutex_unlock(&txn->delayed->renames);
	return ret || !orphan ? ret : remove_orphan(txn, root, r.to.in.inode, err);
}
