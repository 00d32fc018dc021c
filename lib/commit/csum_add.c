// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checksums of written data are collected in memory and inserted in address order, those of adjacent data in one item.
 * They replace checksums that were left behind for the same range.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/commit/csums.h"
#include "lib/commit/txn.h"

struct csum_run {
	uint64_t logical;
	uint32_t size; /* of its checksums */
	uint8_t *sums;
};

void csums_free(struct csums *c)
{
	free(c->runs);
	pool_free(&c->pool);
	*c = (struct csums){ 0 };
}

int csums_add(struct btrkit_txn *txn, uint64_t logical, const uint8_t *sums, size_t size, struct btrkit_error *err)
{
	struct csums *c = &txn->csums;
	struct csum_run *run;
	uint8_t *copy;

	if (c->n == c->room) {
		const size_t room = c->room ? 2 * c->room : 64;
		struct csum_run *more = reallocarray(c->runs, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		c->runs = more;
		c->room = room;
	}
	copy = pool_take(&c->pool, size, 1);
	if (!copy)
		return err_nomem(err);
	memcpy(copy, sums, size);
	run = &c->runs[c->n++];
	*run = (struct csum_run){ logical, (uint32_t)size, copy };
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct csum_run *x = a, *y = b;

	return x->logical < y->logical ? -1 : x->logical > y->logical;
}

/* Maximum size of a checksum item that Linux creates. */
static uint32_t item_max(const struct btrkit_fs *fs)
{
	const uint32_t room = leaf_room(fs->geometry.nodesize) - 2 * (uint32_t)sizeof(struct disk_item);

	return (room / fs->geometry.csum->size - 1) * fs->geometry.csum->size;
}

/* An item that is being assembled. */
struct csum_item {
	struct btrkit_txn *txn;
	struct edit_tree *t;
	uint8_t *bytes;
	uint32_t size, max;
	uint64_t start, end; /* of the data */
};

/*
 * Checksums may have been left behind in free space. They do not match the new data, and Linux rejects overlapping
 * items.
 */
static int make_room(const struct csum_item *i, struct btrkit_error *err)
{
	const struct range r = { i->start, i->end - i->start };
	struct range there;
	const int ret = csums_before(&i->t->c, i->end, &there, err);

	if (ret)
		return ret < 0 ? ret : 0;
	return range_end(&there) > i->start ? csums_trim(i->txn, &r, err) : 0;
}

static int put_item(struct csum_item *i, struct btrkit_error *err)
{
	int ret = 0;

	if (i->size)
		ret = make_room(i, err);
	if (!ret && i->size)
		ret = edit_insert(i->t, &KEY(OID_EXTENT_CSUM, KEY_EXTENT_CSUM, i->start), i->bytes, i->size, err);
	i->size = 0;
	return ret;
}

static int add_run(struct csum_item *i, const struct csum_run *run, struct btrkit_error *err)
{
	const struct item_ctx *ctx = &i->t->c.fs->items;
	uint64_t logical = run->logical;
	int ret = 0;

	/* No space is allocated twice in a transaction. */
	if (i->end > logical)
		return err_corrupt(err, NULL, "data at %" PRIu64 " was written twice", logical);
	for (uint32_t done = 0; !ret && done < run->size;) {
		uint32_t n;

		if (i->size && (logical != i->end || i->size == i->max))
			ret = put_item(i, err);
		if (ret)
			return ret;
		if (!i->size)
			i->start = i->end = logical;
		n = run->size - done < i->max - i->size ? run->size - done : i->max - i->size;
		memcpy(i->bytes + i->size, run->sums + done, n);
		i->size += n;
		done += n;
		logical += (uint64_t)(n / ctx->csum_size) * ctx->sectorsize;
		i->end = logical;
	}
	return ret;
}

int csums_run(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct csums *c = &txn->csums;
	struct csum_item item = { .txn = txn, .max = item_max(txn->fs) };
	int ret;

	if (!c->n)
		return 0;
	item.bytes = malloc(item.max);
	if (!item.bytes)
		return err_nomem(err);
	ret = overlay_tree(txn->overlay, OID_CSUM_TREE, &item.t, err);
	qsort(c->runs, c->n, sizeof(*c->runs), by_address);
	for (size_t i = 0; !ret && i < c->n; i++)
		ret = add_run(&item, &c->runs[i], err);
	if (!ret)
		ret = put_item(&item, err);
	free(item.bytes);
	csums_free(c);
	return ret;
}
