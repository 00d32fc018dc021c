// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cloning: ranges of files that share extents with other ranges. */
#include "lib/modify/write.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/err.h"

#define CLONE_ITEMS 100u /* extents cloned by one operation */
#define CLONE_DROPS 2u	 /* extents of the target replaced by one of them at most */

struct cloning {
	const struct btrkit_clone *what;
	struct writing w;	/* the target */
	struct op from;		/* for reading the tree of the source */
	struct op_inode source;
	uint64_t at, end;	/* what is left of the source, whole sectors */
	uint64_t length;	/* of the whole range, in bytes */
};

static int invalid(struct btrkit_error *err, const char *why)
{
	return err_set(err, BTRKIT_INVALID, "cannot clone: %s", why);
}

static int check_source(const struct cloning *c, struct btrkit_error *err)
{
	const uint32_t mode = op_inode_mode(&c->source);

	if (S_ISDIR(mode))
		return err_system(err, EISDIR, "inode %" PRIu64, c->source.inode);
	if (!S_ISREG(mode))
		return err_set(err, BTRKIT_INVALID, "inode %" PRIu64 " is not a regular file", c->source.inode);
	if ((le64_get(c->source.item.flags) ^ le64_get(c->w.in.item.flags)) & INODE_NODATASUM)
		return invalid(err, "only one of the files has checksums");
	return 0;
}

/* Checks the request, and sets the range to clone. @return 0; 1: nothing to do; <0 */
static int check_clone(struct cloning *c, struct btrkit_error *err)
{
	const struct btrkit_clone *a = c->what;
	const uint64_t sector = c->w.op->txn->fs->geometry.sectorsize, from = a->from_offset, to = a->to_offset;
	const uint64_t size = le64_get(c->source.item.size), old = le64_get(c->w.in.item.size);
	int ret = check_source(c, err);

	if (ret)
		return ret;
	c->length = a->length;
	if (!c->length && from == size)
		return 1;
	if (!c->length && from < size)
		c->length = size - from;
	if (from % sector || to % sector)
		return invalid(err, "start of a range is not aligned to the sector size");
	if (from >= size || c->length > size - from)
		return invalid(err, "range extends past the end of the file");
	if (to > INT64_MAX || c->length > INT64_MAX - to)
		return err_system(err, EFBIG, "file larger than 8 EiB");
	if (c->length % sector && (from + c->length < size || to + c->length < old))
		return invalid(err, "end of the range is neither aligned to the sector size nor the end of both files");
	c->at = from;
	c->end = sector_up(c->w.op, from + c->length);
	if (a->from_root == a->to_root && a->from_inode == a->to_inode && to < c->end &&
	    from < to + (c->end - from))
		return invalid(err, "the ranges overlap");
	return 0;
}

static uint64_t target_of(const struct cloning *c, uint64_t at)
{
	return c->what->to_offset + (at - c->what->from_offset);
}

/* The size of the target when everything is cloned. */
static uint64_t size_then(const struct cloning *c)
{
	const uint64_t size = le64_get(c->w.in.item.size), end = c->what->to_offset + c->length;

	return size > end ? size : end;
}

/* Clones up to @end a part of an extent, or of a hole if @fe is NULL. */
static int clone_part(struct cloning *c, const struct file_extent *fe, uint64_t within, uint64_t end,
		      struct btrkit_error *err)
{
	const uint64_t to = target_of(c, c->at);
	uint64_t done;
	int ret;

	ret = extents_drop(c->w.op, &c->w.in, to, to + (end - c->at), CLONE_DROPS, &done, err);
	if (ret)
		return ret;
	c->at += done - to;
	if (fe) {
		struct file_extent part = *fe;

		part.offset += within;
		part.num_bytes = done - to;
		return extents_put(c->w.op, &c->w.in, to, &part, err);
	}
	return extents_put_hole(c->w.op, &c->w.in, to, done, err);
}

/* Whether the inline extent can be copied as an inline extent. @return 0; 1: no; <0 */
static int check_inline(struct cloning *c, uint64_t bytes, struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(c->w.in.inode, KEY_EXTENT_DATA, 0);
	struct op *op = c->w.op;
	uint64_t there = 0;
	struct item item;
	int ret;

	if (target_of(c, c->at) || le64_get(c->w.in.item.size) > bytes)
		return 1;
	ret = write_is_inline(&c->w, &there, err);
	if (ret <= 0)
		return ret;
	ret = delayed_seek(op->t, &op->reader, &key, &item, err);
	return ret < 0 ? ret : !ret && item.key.type == KEY_EXTENT_DATA;
}

static int clone_inline(struct cloning *c, const struct extent_at *x, struct btrkit_error *err)
{
	const uint32_t sector = c->w.op->txn->fs->geometry.sectorsize;
	const bool verify = false; /* inline data is protected by the checksum of its tree block */
	const uint64_t to = target_of(c, c->at);
	uint64_t done;
	int ret;

	/* Linux only creates inline extents of up to a sector; the buffer has no room for more. */
	if (x->fe.ram_bytes > sector) {
		ret = err_corrupt(err, "ram_bytes", "inline extent of %" PRIu64 " bytes", x->fe.ram_bytes);
		err_at_tree(err, c->from.t->id);
		err_at_key(err, &x->key);
		return ret;
	}
	ret = check_inline(c, x->fe.ram_bytes, err);
	if (ret < 0)
		return ret;
	if (!ret) {
		ret = extents_drop(c->w.op, &c->w.in, 0, sector, UINT32_MAX, &done, err);
		if (!ret)
			ret = delayed_insert(c->w.op->t, &KEY(c->w.in.inode, KEY_EXTENT_DATA, 0), x->item.data,
					     x->item.size, NULL, err);
		c->w.in.item.nbytes = le64_put(le64_get(c->w.in.item.nbytes) + x->fe.ram_bytes);
	} else {
		memset(c->w.edges, 0, sector);
		ret = data_read_extent(&c->from, x, 0, verify, c->w.edges, (size_t)x->fe.ram_bytes, err);
		if (!ret)
			ret = write_sector(&c->w, to, size_then(c), err);
	}
	if (!ret)
		c->at += sector;
	return ret;
}

static int clone_some(struct cloning *c, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned n = 0; !ret && n < CLONE_ITEMS && c->at < c->end; n++) {
		struct extent_at x;
		uint64_t end;

		ret = extents_next(&c->from, c->source.inode, c->at, c->end, &x, err);
		if (ret < 0)
			return ret;
		if (ret || x.key.offset > c->at) {
			ret = clone_part(c, NULL, 0, ret ? c->end : x.key.offset, err);
			continue;
		}
		end = x.end < c->end ? x.end : c->end;
		if (x.fe.type == FILE_EXTENT_INLINE)
			ret = clone_inline(c, &x, err);
		else
			ret = clone_part(c, x.fe.disk_bytenr ? &x.fe : NULL, c->at - x.key.offset, end, err);
	}
	return ret;
}

/* Locks and reads both inodes. */
static int open_both(struct cloning *c, struct btrkit_error *err)
{
	const struct btrkit_clone *a = c->what;
	int ret;

	delayed_lock_two(c->w.op->t, a->to_inode, c->from.t, a->from_inode, &c->w.op->locks);
	ret = write_open_locked(&c->w, a->to_inode, err);
	return ret ? ret : op_inode_get(&c->from, a->from_inode, &c->source, err);
}

/* @return 0; 1: everything is cloned; WRITE_CLEAR; <0 */
static int clone_step(struct cloning *c, bool first, struct btrkit_error *err)
{
	const uint64_t to = c->what->to_offset;
	uint64_t end;
	int ret = open_both(c, err);

	if (!ret && first)
		ret = check_clone(c, err);
	if (!ret && first)
		ret = write_check_extend(&c->w, to, err);
	if (!ret && first && to > le64_get(c->w.in.item.size))
		ret = write_extend(&c->w, to, le64_get(c->w.in.item.size), err);
	if (ret)
		return ret;
	ret = clone_some(c, err);
	end = c->at < c->end ? target_of(c, c->at) : to + c->length;
	if (c->at > c->what->from_offset && end > le64_get(c->w.in.item.size))
		c->w.in.item.size = le64_put(end);
	ret = write_end(&c->w, ret, err);
	return ret ? ret : c->at >= c->end;
}

static int clone_all(struct btrkit_txn *txn, const struct btrkit_clone *what, struct btrkit_error *err)
{
	const struct ticket_need need = write_need(txn, 1u << 20);
	struct cloning c = { .what = what };
	bool first = true, tried = false;
	int ret = 0;

	if (what->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", what->flags);
	while (!ret) {
		struct op op;

		ret = op_begin(&op, txn, what->to_root, &need, err);
		if (ret)
			return ret;
		c.w = (struct writing){ .op = &op };
		ret = op_join(&op, what->from_root, &c.from, err);
		if (!ret)
			ret = clone_step(&c, first, err);
		write_close(&c.w);
		delayed_reader_release(&c.from.reader);
		ret = op_end(&op, ret, err);
		if (ret == WRITE_CLEAR) {
			ret = write_clear(txn, what->to_root, what->to_inode, what->to_offset, err);
			if (!ret)
				continue;
		}
		if (ret == -ENOSPC) {
			ret = op_again(txn, &tried, ret, err);
			continue;
		}
		first = tried = false;
	}
	return ret < 0 ? ret : 0;
}

int btrkit_txn_clone(struct btrkit_txn *txn, const struct btrkit_clone *what, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, clone_all(txn, what, &own));
}
