// SPDX-License-Identifier: LGPL-2.1-or-later
/* Preallocating space for a file, and punching holes. */
#include "lib/modify/write.h"

#include <errno.h>

#include "lib/base/err.h"

#define PREALLOC_MAX (256ull << 20) /* bytes of a preallocated extent at most, as in Linux */
#define PREALLOC_ITEMS 64u	    /* created by one operation */

static int check_range(uint64_t offset, uint64_t len, struct btrkit_error *err)
{
	if (!len)
		return err_set(err, BTRKIT_INVALID, "empty range");
	if (offset > INT64_MAX || len > INT64_MAX - offset)
		return err_system(err, EFBIG, "file larger than 8 EiB");
	return 0;
}

/*
 * Finds the first offset in [@from, @to) where the file has data or preallocated space. @return 0; 1: there is none; <0
 */
static int next_data(struct writing *w, uint64_t from, uint64_t to, uint64_t *ret, struct btrkit_error *err)
{
	while (from < to) {
		struct extent_at x;
		const int r = extents_next(w->op, w->in.inode, from, to, &x, err);

		if (r)
			return r;
		*ret = x.key.offset > from ? x.key.offset : from;
		if (x.fe.type == FILE_EXTENT_INLINE || x.fe.disk_bytenr)
			return 0;
		from = x.end;
	}
	return 1;
}

/* Zeroes part of a sector, unless the sector is in a hole. */
static int zero_part(struct writing *w, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	const uint64_t start = sector_down(w->op, from), size = le64_get(w->in.item.size);
	uint64_t at;
	int ret;

	if (from >= to || from >= sector_up(w->op, size))
		return 0;
	ret = next_data(w, start, start + 1, &at, err);
	return ret ? (ret < 0 ? ret : 0) : write_range(w, from, NULL, (size_t)(to - from), size, err);
}

/*
 * Whether the range is entirely in a hole: then neither the file nor its times change. As in Linux, only one hole is
 * looked at, and the range is rounded to sectors by its length, not by its end. @return 0: it is not; 1: it is; <0
 */
static int is_in_hole(struct writing *w, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	const uint64_t start = sector_down(w->op, from);
	uint64_t end = start + sector_up(w->op, to - from);
	struct extent_at x;
	const int ret = extents_next(w->op, w->in.inode, start, end, &x, err);

	if (ret < 0)
		return ret;
	if (!ret && x.key.offset <= start && (x.fe.type == FILE_EXTENT_INLINE || x.fe.disk_bytenr))
		return 0;
	if (!ret)
		end = x.key.offset > start ? x.key.offset : x.end;
	return end >= to;
}

/* Zeroes the parts of the range that are not whole sectors. @return 0; 1: the range is entirely in a hole; <0 */
static int punch_edges(struct writing *w, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	const uint64_t inner = sector_up(w->op, from), outer = sector_down(w->op, to);
	int ret;

	ret = is_in_hole(w, from, to, err);
	if (ret)
		return ret;
	w->compression = COMPRESS_NONE;
	ret = zero_part(w, from, inner < to ? inner : to, err);
	if (!ret && (outer >= inner))
		ret = zero_part(w, outer, to, err);
	return write_end(w, ret, err);
}

/* @return 0; 1: the range is entirely in a hole; <0 */
static int punch_ends(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
		      struct btrkit_error *err)
{
	const struct ticket_need need = write_need(txn, 1);
	struct op op;
	struct writing w = { .op = &op };
	int ret = op_begin(&op, txn, root, &need, err);

	if (ret)
		return ret;
	ret = write_open(&w, inode, err);
	if (!ret)
		ret = punch_edges(&w, offset, offset + len, err);
	write_close(&w);
	return op_end(&op, ret, err);
}

static int punch_all(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err)
{
	const uint64_t sector = txn->fs->geometry.sectorsize;
	bool tried = false;
	int ret = check_range(offset, len, err);

	if (ret)
		return ret;
	ret = punch_ends(txn, root, inode, offset, len, err);
	if (ret == -ENOSPC) {
		ret = op_again(txn, &tried, ret, err);
		if (!ret)
			ret = punch_ends(txn, root, inode, offset, len, err);
	}
	if (ret)
		return ret < 0 ? ret : 0;
	return write_drop(txn, root, inode, (offset + sector - 1) & ~(sector - 1), (offset + len) & ~(sector - 1), err);
}

int btrkit_txn_punch(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
		     struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, punch_all(txn, root, inode, offset, len, &own));
}

struct preallocating {
	struct writing w;
	uint64_t at, to; /* what is left, whole sectors */
	uint64_t end;	 /* of the requested range */
	bool keep_size;
};

/* Finds the next range from p->at on that is neither allocated nor preallocated. @return 0; 1: there is none; <0 */
static int find_gap(struct preallocating *p, uint64_t *end, struct btrkit_error *err)
{
	while (p->at < p->to) {
		const uint64_t size = le64_get(p->w.in.item.size), edge = sector_up(p->w.op, size);
		struct extent_at x;
		int ret = extents_next(p->w.op, p->w.in.inode, p->at, p->to, &x, err);

		if (ret < 0)
			return ret;
		*end = p->to;
		if (ret)
			return 0;
		if (x.key.offset > p->at) {
			*end = x.key.offset;
			return 0;
		}
		if (x.fe.type != FILE_EXTENT_INLINE &&
		    (!x.fe.disk_bytenr || (x.fe.type == FILE_EXTENT_REG && p->at >= size))) {
			*end = x.end < p->to ? x.end : p->to;
			return 0;
		}
		/* The part of a regular extent past the end of the file is not part of the file: it is replaced. */
		p->at = x.fe.type == FILE_EXTENT_REG && p->at < edge && edge < x.end ? edge : x.end;
	}
	return 1;
}

static int fill_gap(struct preallocating *p, uint64_t end, struct btrkit_error *err)
{
	const uint64_t left = end - p->at;
	struct op *op = p->w.op;
	struct file_extent fe = { .generation = op->txn->generation, .type = FILE_EXTENT_PREALLOC };
	uint64_t done;
	struct range r;
	int ret;

	ret = data_alloc(op, op->txn->fs->geometry.sectorsize, left < PREALLOC_MAX ? left : PREALLOC_MAX, &r, err);
	if (!ret)
		ret = extents_drop(op, &p->w.in, p->at, p->at + r.length, UINT32_MAX, &done, err);
	if (ret)
		return ret;
	p->w.in.item.flags = le64_put(le64_get(p->w.in.item.flags) | INODE_PREALLOC);
	fe.disk_bytenr = r.start;
	fe.disk_num_bytes = fe.num_bytes = fe.ram_bytes = r.length;
	ret = extents_put(op, &p->w.in, p->at, &fe, err);
	p->at += r.length;
	return ret;
}

/* Requires the inode's lock. @return 0; 1: done; WRITE_CLEAR; -ENOSPC: as much as possible was preallocated; <0 */
static int prealloc_some(struct preallocating *p, bool first, struct btrkit_error *err)
{
	struct op *op = p->w.op;
	const uint64_t old = le64_get(p->w.in.item.size);
	uint64_t end = 0;
	int ret = 0;

	/*
	 * If this fails nothing was changed. As in Linux, a small file stays inline if the range only touches its end.
	 */
	if (first && p->at > old)
		ret = write_check_extend(&p->w, p->at, err);
	if (first && !ret && p->at > old)
		ret = write_extend(&p->w, p->at, UINT64_MAX, err);
	else if (first && !ret && p->end > old)
		ret = write_extend(&p->w, sector_up(op, old), old, err);
	if (ret)
		return ret;
	for (unsigned n = 0; !ret && n < PREALLOC_ITEMS; n++) {
		ret = find_gap(p, &end, err);
		if (!ret)
			ret = fill_gap(p, end, err);
	}
	if (ret < 0 && (ret != -ENOSPC || failure_is_set(op->txn->failure)))
		return ret;
	end = p->at < p->end ? p->at : p->end;
	if (!p->keep_size && end > old)
		p->w.in.item.size = le64_put(end);
	return write_end(&p->w, ret, err);
}

static int prealloc_all(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
			unsigned flags, struct btrkit_error *err)
{
	const struct ticket_need need = write_need(txn, 1u << 20);
	struct preallocating p = { .end = offset + len, .keep_size = flags & BTRKIT_PREALLOC_KEEP_SIZE };
	bool first = true, tried = false;
	int ret;

	if (flags & ~(unsigned)BTRKIT_PREALLOC_KEEP_SIZE)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", flags);
	ret = check_range(offset, len, err);
	while (!ret) {
		struct op op;

		ret = op_begin(&op, txn, root, &need, err);
		if (ret)
			return ret;
		if (!p.to) {
			p.at = sector_down(&op, offset);
			p.to = sector_up(&op, offset + len);
		}
		p.w = (struct writing){ .op = &op };
		ret = write_open(&p.w, inode, err);
		if (!ret)
			ret = prealloc_some(&p, first, err);
		write_close(&p.w);
		ret = op_end(&op, ret, err);
		if (ret == WRITE_CLEAR) {
			ret = write_clear(txn, root, inode, p.at, err);
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

int btrkit_txn_prealloc(struct btrkit_txn *txn, uint64_t root, uint64_t inode, uint64_t offset, uint64_t len,
			unsigned flags, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;

	return err_pass(err, &own, prealloc_all(txn, root, inode, offset, len, flags, &own));
}
