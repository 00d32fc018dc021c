// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/extents.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"

static int decode(const struct op *op, struct extent_at *x, struct btrkit_error *err)
{
	const struct item_ctx *ctx = &op->txn->fs->items;
	uint64_t bytes;
	int ret;

	x->key = x->item.key;
	ret = item_validate(ctx, &x->item, err);
	if (!ret)
		ret = file_extent_decode(ctx, &x->item, &x->fe, err);
	if (ret) {
		err_at_tree(err, op->t->id);
		err_at_key(err, &x->key);
		return ret;
	}
	bytes = x->fe.type == FILE_EXTENT_INLINE ? sector_up(op, x->fe.ram_bytes) : x->fe.num_bytes;
	x->end = x->key.offset + bytes;
	if (x->end > x->key.offset)
		return 0;
	err_corrupt(err, "num_bytes", "file extent is empty, or ends past the maximum file size");
	err_at_tree(err, op->t->id);
	err_at_key(err, &x->key);
	return -EUCLEAN;
}

int extents_next(struct op *op, uint64_t inode, uint64_t from, uint64_t to, struct extent_at *ret,
		 struct btrkit_error *err)
{
	const struct btrkit_key key = KEY(inode, KEY_EXTENT_DATA, from);
	int r;

	/* An extent that starts before @from may extend past it. */
	r = delayed_seek_back(op->t, &op->reader, &key, &ret->item, err);
	if (r < 0)
		return r;
	if (!r && ret->item.key.type == KEY_EXTENT_DATA) {
		r = decode(op, ret, err);
		if (r || ret->end > from)
			return r;
	}
	r = delayed_seek(op->t, &op->reader, &key, &ret->item, err);
	if (r)
		return r;
	if (ret->item.key.type != KEY_EXTENT_DATA || ret->item.key.offset >= to)
		return 1;
	return decode(op, ret, err);
}

static int put_item(struct op *op, const struct btrkit_key *key, const struct file_extent *fe, bool there,
		    struct btrkit_error *err)
{
	const struct disk_file_extent d = {
		.generation = le64_put(fe->generation),
		.ram_bytes = le64_put(fe->ram_bytes),
		.compression = fe->compression,
		.other_encoding = le16_put(fe->other_encoding),
		.type = fe->type,
		.disk_bytenr = le64_put(fe->disk_bytenr),
		.disk_num_bytes = le64_put(fe->disk_num_bytes),
		.offset = le64_put(fe->offset),
		.num_bytes = le64_put(fe->num_bytes),
	};

	if (there)
		return delayed_replace(op->t, key, &d, sizeof(d), err);
	return delayed_insert(op->t, key, &d, sizeof(d), NULL, err);
}

static void count_bytes(struct op_inode *in, int64_t bytes)
{
	in->item.nbytes = le64_put(le64_get(in->item.nbytes) + (uint64_t)bytes);
}

/* Removes the range [@from, @to) from an extent that overlaps it. */
static int cut(struct op *op, struct op_inode *in, const struct extent_at *x, uint64_t from, uint64_t to,
	       struct btrkit_error *err)
{
	const uint64_t start = x->key.offset;
	const uint64_t gone = (x->end < to ? x->end : to) - (start > from ? start : from);
	struct file_extent part = x->fe;
	int ret = 0;

	if (x->fe.type == FILE_EXTENT_INLINE) {
		if (from > start || x->end > to)
			return err_corrupt(err, NULL, "range covers only a part of an inline extent");
		count_bytes(in, -(int64_t)x->fe.ram_bytes);
		return delayed_delete(op->t, &x->key, err);
	}
	/* Add references to the parts that stay before dropping that of the whole extent. */
	if (x->end > to) {
		part.offset = x->fe.offset + (to - start);
		part.num_bytes = x->end - to;
		if (!part.disk_bytenr)
			part.offset = 0;
		ret = put_item(op, &KEY(in->inode, KEY_EXTENT_DATA, to), &part, false, err);
	}
	if (!ret && start < from) {
		part.offset = x->fe.offset;
		part.num_bytes = from - start;
		ret = put_item(op, &x->key, &part, true, err);
	} else if (!ret) {
		ret = delayed_delete(op->t, &x->key, err);
	}
	if (x->fe.disk_bytenr)
		count_bytes(in, -(int64_t)gone);
	return ret;
}

int extents_drop(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
		 struct btrkit_error *err)
{
	struct extent_at x;
	int ret = 0;

	*done = to;
	while (from < to) {
		ret = extents_next(op, in->inode, from, to, &x, err);
		if (ret || !max--) {
			*done = ret ? to : from;
			break;
		}
		ret = cut(op, in, &x, from, to, err);
		if (ret)
			break;
		from = x.end;
	}
	return ret < 0 ? ret : 0;
}

int extents_put(struct op *op, struct op_inode *in, uint64_t offset, const struct file_extent *fe,
		struct btrkit_error *err)
{
	if (fe->disk_bytenr)
		count_bytes(in, (int64_t)fe->num_bytes);
	return put_item(op, &KEY(in->inode, KEY_EXTENT_DATA, offset), fe, false, err);
}

static bool has_hole_items(const struct op *op)
{
	return !(op->txn->fs->super.incompat & INCOMPAT_NO_HOLES);
}

int extents_put_hole(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	const struct file_extent fe = { .generation = op->txn->generation,
					.type = FILE_EXTENT_REG,
					.ram_bytes = to - from,
					.num_bytes = to - from };

	return from < to && has_hole_items(op) ? extents_put(op, in, from, &fe, err) : 0;
}

/* A range past the end of a file that will become a hole. */
struct gap {
	uint64_t start, end;
	unsigned left; /* extents in it that have to be dropped */
};

/* Preallocated extents and items of holes are allowed past the end of a file. */
static bool may_stay(const struct extent_at *x)
{
	return x->fe.type == FILE_EXTENT_PREALLOC || (x->fe.type == FILE_EXTENT_REG && !x->fe.disk_bytenr);
}

/* Finds the first gap from @from on, with at most @max extents to drop. @return 0; 1: there is none; <0 */
static int next_gap(struct op *op, uint64_t inode, uint64_t from, uint64_t to, unsigned max, struct gap *ret,
		    struct btrkit_error *err)
{
	struct extent_at x;

	*ret = (struct gap){ from, from, 0 };
	while (ret->end < to) {
		const int r = extents_next(op, inode, ret->end, to, &x, err);

		if (r < 0)
			return r;
		if (r) {
			ret->end = to;
		} else if (x.key.offset > ret->end) {
			ret->end = x.key.offset;
		} else if (!may_stay(&x)) {
			if (ret->left == max)
				break;
			ret->left++;
			ret->end = x.end < to ? x.end : to;
		} else if (ret->end > ret->start) {
			break;
		} else {
			ret->start = ret->end = x.end;
		}
	}
	return ret->end == ret->start || ret->start >= to;
}

int extents_check_behind(struct op *op, uint64_t inode, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	unsigned holes = 0;
	struct gap gap;
	int ret;

	for (; !(ret = next_gap(op, inode, from, to, 1, &gap, err)); from = gap.end)
		if (gap.left || (holes++ && has_hole_items(op)))
			return 1;
	return ret < 0 ? ret : 0;
}

int extents_clear_behind(struct op *op, struct op_inode *in, uint64_t from, uint64_t to, unsigned max, uint64_t *done,
			 struct btrkit_error *err)
{
	struct gap gap;
	uint64_t end;
	int ret = 0;

	*done = to;
	while (!(ret = next_gap(op, in->inode, from, to, max, &gap, err))) {
		if (gap.left)
			ret = extents_drop(op, in, gap.start, gap.end, gap.left, &end, err);
		if (!ret)
			ret = extents_put_hole(op, in, gap.start, gap.end, err);
		if (ret)
			return ret;
		from = gap.end;
		if (!gap.left && !has_hole_items(op))
			continue;
		if (max <= gap.left + 1) {
			*done = from;
			break;
		}
		max -= gap.left + 1;
	}
	return ret < 0 ? ret : 0;
}
