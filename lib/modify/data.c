// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/fs/extent_read.h"
#include "lib/volume/row_write.h"

/* Checksums that are made at a time. */
#define SUMS_AT_A_TIME 256u

int data_alloc(struct op *op, uint64_t min, uint64_t max, struct range *ret, struct btrkit_error *err)
{
	int r;

	/* Free space may have to be loaded from trees, and a chunk changes some. */
	delayed_lock_trees(op->d);
	r = txn_alloc_data(op->txn, min, max, ret, err);
	if (r == -ENOSPC) {
		r = txn_add_data_chunk(op->txn, err);
		if (!r)
			r = txn_alloc_data(op->txn, min, max, ret, err);
	}
	delayed_unlock_trees(op->d);
	return r;
}

static int write_sums(struct op *op, uint64_t logical, const uint8_t *data, size_t len, struct btrkit_error *err)
{
	const struct csum_kind *csum = op->txn->fs->judge.csum;
	const uint32_t sector = op->txn->fs->super.sectorsize;
	uint8_t sums[SUMS_AT_A_TIME * CSUM_SIZE_MAX];
	int ret = 0;

	for (size_t at = 0; !ret && at < len;) {
		const uint64_t from = logical + at;
		unsigned n = 0;

		for (; n < SUMS_AT_A_TIME && at < len; at += sector)
			csum->compute(data + at, sector, sums + n++ * csum->size);
		pthread_mutex_lock(&op->d->lock);
		ret = csums_add(op->txn, from, sums, n * csum->size, err);
		pthread_mutex_unlock(&op->d->lock);
	}
	return ret;
}

int data_write(struct op *op, uint64_t logical, const uint8_t *data, size_t len, bool sums, struct btrkit_error *err)
{
	bool kept;
	int ret;

	/* Where it lies stays so as long as trees do not change. */
	pthread_rwlock_rdlock(&op->d->trees);
	kept = row_wanted(op->txn->fs->volume, logical);
	if (kept)
		pthread_mutex_lock(&op->d->lock);
	ret = txn_write_data(op->txn, logical, data, len, err);
	if (kept)
		pthread_mutex_unlock(&op->d->lock);
	pthread_rwlock_unlock(&op->d->trees);
	return ret || !sums ? ret : write_sums(op, logical, data, len, err);
}

/* With checksums that still wait in their tree. */
static int read_sector(struct op *op, const struct extent_at *x, uint64_t offset, bool verify, uint8_t *to,
		       struct btrkit_error *err)
{
	const uint32_t sector = op->txn->fs->super.sectorsize;
	const uint64_t left = x->fe.type == FILE_EXTENT_INLINE ? x->fe.ram_bytes - offset : sector;
	const size_t n = left < sector ? (size_t)left : sector;
	struct extent_reader r;
	int ret;

	memset(to + n, 0, sector - n);
	ret = csums_run(op->txn, err);
	if (ret)
		return ret;
	ret = extent_reader_init(&r, op->txn->fs, verify, err);
	if (!ret)
		ret = extent_read(&r, &x->fe, offset, to, n, err);
	extent_reader_release(&r);
	return ret;
}

int data_read_sector(struct op *op, const struct op_inode *in, uint64_t offset, uint8_t *to, struct btrkit_error *err)
{
	const uint32_t sector = op->txn->fs->super.sectorsize;
	const bool verify = !(le64_get(in->item.flags) & INODE_NODATASUM);
	struct extent_at x;
	int ret;

	ret = extents_next(op, in->inode, offset, offset + sector, &x, err);
	if (ret < 0)
		return ret;
	if (ret || (x.fe.type != FILE_EXTENT_INLINE && !x.fe.disk_bytenr)) {
		memset(to, 0, sector);
		return 0;
	}
	delayed_lock_trees(op->d);
	ret = read_sector(op, &x, offset - x.key.offset, verify, to, err);
	delayed_unlock_trees(op->d);
	return ret;
}
