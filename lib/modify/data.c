// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/data.h"
#include "lib/commit/refs.h"
#include "lib/fs/extent_read.h"
#include "lib/reserve/reserve.h"
#include "lib/volume/full_stripe.h"

/* Smaller ranges are used only if no chunk can be allocated. */
#define PLACE_WANTED (1u << 20)

static int alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	int r = txn_spare_mixed(op->txn, min, &max, err);

	return r ? r : txn_alloc_data(op->txn, min, max, ret, err);
}

int data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	const uint64_t wanted = max < PLACE_WANTED ? max : PLACE_WANTED;
	int r;

	/* Loading free space from trees and allocating a chunk, which changes trees, require the lock. */
	sync_lock_trees(&op->txn->sync);
	r = alloc(op, wanted > min ? wanted : min, max, ret, err);
	if (r == -ENOSPC) {
		r = txn_add_data_chunk(op->txn, err);
		/* If there is no space for a chunk, use any free range of at least @min bytes. */
		if (!r || (r == -ENOSPC && !failure_is_set(op->txn->failure)))
			r = alloc(op, min, max, ret, err);
	}
	sync_unlock_trees(&op->txn->sync);
	return r;
}

int data_add_sums(struct op *op, uint64_t logical, const uint8_t *sums, size_t n, struct btrkit_error *err)
{
	int ret;

	if (!n)
		return 0;
	sync_lock_space(&op->txn->sync);
	op->changed = true;
	ret = csums_add(op->txn, logical, sums, n * op->txn->fs->geometry.csum->size, err);
	sync_unlock_space(&op->txn->sync);
	return ret;
}

int data_write(struct op *op, uint64_t logical, const uint8_t *data, size_t len, struct btrkit_error *err)
{
	bool kept;
	int ret;

	/* Holding this lock keeps the mapping of the address from changing. */
	sync_rdlock_trees(&op->txn->sync);
	kept = full_stripe_wanted(op->txn->fs->volume, logical);
	if (kept)
		sync_lock_space(&op->txn->sync);
	ret = txn_write_data(op->txn, logical, data, len, err);
	if (ret == -ENOSPC)
		tickets_set_device_full(op->txn->tickets, true);
	if (kept)
		sync_unlock_space(&op->txn->sync);
	sync_rdunlock_trees(&op->txn->sync);
	return ret;
}

/* Writing in place with a damaged item would overwrite data of others. */
static int check_prealloc(const struct op *op, const struct extent_at *x, struct btrkit_error *err)
{
	const struct file_extent *fe = &x->fe;

	if (fe->compression || fe->other_encoding)
		err_corrupt(err, "compression", "preallocated extent is marked as compressed or encoded");
	else if (fe->num_bytes > fe->disk_num_bytes || fe->offset > fe->disk_num_bytes - fe->num_bytes)
		err_corrupt(err, "disk_num_bytes", "preallocated range of %" PRIu64 " bytes exceeds extent of %" PRIu64,
			    fe->num_bytes, fe->disk_num_bytes);
	else
		return 0;
	err_at_tree(err, op->t->id);
	err_at_key(err, &x->key);
	return -EUCLEAN;
}

int data_is_own(struct op *op, uint64_t inode, const struct extent_at *x, struct btrkit_error *err)
{
	const struct range extent = { x->fe.disk_bytenr, x->fe.disk_num_bytes };
	const struct range kept = { x->fe.disk_bytenr + x->fe.offset, x->fe.num_bytes };
	const struct extent_ref ref = { .type = KEY_EXTENT_DATA_REF,
					.root = op->t->id,
					.objectid = inode,
					.offset = x->key.offset - x->fe.offset };
	struct root_item item;
	struct tree_root root;
	bool fresh;
	int ret = check_prealloc(op, x, err);

	if (ret)
		return ret;
	sync_lock_trees(&op->txn->sync);
	ret = fs_find_root(op->txn->fs, op->t->id, &root, &item, err);
	if (!ret)
		ret = refs_is_only(op->txn->refs, &extent, &ref, item.last_snapshot, &fresh, err);
	if (!ret && !fresh && full_stripe_wanted(op->txn->fs->volume, extent.start))
		ret = 1;
	if (!ret)
		ret = csums_exist(op->txn, &kept, err);
	sync_unlock_trees(&op->txn->sync);
	return ret;
}

/* Requires the lock of the trees; no checksums of the extent may be pending. */
static int read_bytes(struct op *op, const struct extent_at *x, uint64_t offset, bool verify, uint8_t *to, size_t n,
		      struct btrkit_error *err)
{
	struct extent_reader r;
	int ret = extent_reader_init(&r, op->txn->fs, verify, err);

	if (!ret)
		ret = extent_read(&r, &x->fe, offset, to, n, err);
	extent_reader_release(&r);
	return ret;
}

int data_read_extent(struct op *op, const struct extent_at *x, uint64_t offset, bool verify, uint8_t *to, size_t n,
		     struct btrkit_error *err)
{
	bool waits;
	int ret = 0;

	/* Usually a shared lock is enough. Only pending checksums and data have to be put into the trees first. */
	sync_rdlock_trees(&op->txn->sync);
	sync_lock_space(&op->txn->sync);
	waits = x->fe.type != FILE_EXTENT_INLINE && (op->txn->csums.n || op->txn->data);
	sync_unlock_space(&op->txn->sync);
	if (!waits)
		ret = read_bytes(op, x, offset, verify, to, n, err);
	sync_rdunlock_trees(&op->txn->sync);
	if (!waits)
		return ret;
	sync_lock_trees(&op->txn->sync);
	ret = csums_run(op->txn, err);
	/* They belong to other operations, which have succeeded. */
	if (ret)
		failure_note(op->txn->failure, ret, err);
	else
		ret = read_bytes(op, x, offset, verify, to, n, err);
	sync_unlock_trees(&op->txn->sync);
	return ret;
}

int data_read_sector(struct op *op, const struct op_inode *in, uint64_t offset, uint8_t *to, struct btrkit_error *err)
{
	const uint32_t sector = op->txn->fs->geometry.sectorsize;
	const bool verify = !(le64_get(in->item.flags) & INODE_NODATASUM);
	const uint64_t size = le64_get(in->item.size), left = size > offset ? size - offset : 0;
	struct extent_at x;
	size_t n = sector;
	int ret;

	memset(to, 0, sector);
	ret = extents_next(op, in->inode, offset, offset + sector, &x, err);
	if (ret < 0)
		return ret;
	if (ret || (x.fe.type != FILE_EXTENT_INLINE && !x.fe.disk_bytenr))
		return 0;
	if (x.fe.type == FILE_EXTENT_INLINE && x.fe.ram_bytes - offset < n)
		n = (size_t)(x.fe.ram_bytes - offset);
	ret = data_read_extent(op, &x, offset - x.key.offset, verify, to, n, err);
	/* The extent may still contain data from before the file was truncated. */
	if (!ret && left < n)
		memset(to + left, 0, n - (size_t)left);
	return ret;
}
