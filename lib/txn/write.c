// SPDX-License-Identifier: LGPL-2.1-or-later
/* The blocks of a transaction reach the devices: in the order of addresses, neighbours as one write. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/txn/commit.h"
#include "lib/volume/volume.h"

#define RUN_BYTES (1u << 20)

/* One copy of a block. */
struct block_copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	const uint8_t *data;
};

struct block_list {
	struct btrkit_txn *txn;
	struct block_copy *at;
	size_t n, size;
};

static int add_copies(void *ctx, const struct node *node, struct btrkit_error *err)
{
	struct block_list *l = ctx;
	const struct volume *v = l->txn->fs->volume;

	for (unsigned mirror = 0;; mirror++) {
		struct block_copy *more;
		struct copy copy;
		int ret = volume_map(v, node->bytenr, node->size, mirror, &copy, err);

		if (ret)
			return ret < 0 ? ret : 0;
		if (l->n == l->size) {
			l->size = l->size ? 2 * l->size : 64;
			more = reallocarray(l->at, l->size, sizeof(*more));
			if (!more)
				return err_nomem(err);
			l->at = more;
		}
		l->at[l->n++] = (struct block_copy){ copy.io, copy.devid, copy.physical, node->data };
	}
}

static int by_place(const void *a, const void *b)
{
	const struct block_copy *x = a, *y = b;

	if (x->devid != y->devid)
		return x->devid < y->devid ? -1 : 1;
	return x->physical < y->physical ? -1 : x->physical > y->physical;
}

/* How many copies from @i on lie one behind the other, up to @max bytes. */
static size_t run_length(const struct block_list *l, size_t i, size_t max)
{
	const uint32_t size = l->txn->fs->super.nodesize;
	size_t n = 1;

	while (i + n < l->n && l->at[i + n].devid == l->at[i].devid &&
	       l->at[i + n].physical == l->at[i].physical + n * size && (n + 1) * size <= max)
		n++;
	return n;
}

/* A full disk under a sparse image is met before anything is written. */
static int reserve(const struct block_list *l, struct btrkit_error *err)
{
	const uint64_t size = l->txn->fs->super.nodesize;

	for (size_t i = 0, n; i < l->n; i += n) {
		const struct block_copy *c = &l->at[i];
		int ret;

		n = run_length(l, i, SIZE_MAX);
		ret = btrkit_io_reserve(c->io, c->physical, n * size, err);
		if (ret) {
			err_at_device(err, c->devid, c->physical);
			return ret;
		}
	}
	return 0;
}

static int write_runs(const struct block_list *l, uint8_t *buf, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &l->txn->writer->stats;
	const size_t size = l->txn->fs->super.nodesize;

	for (size_t i = 0, n; i < l->n; i += n) {
		const struct block_copy *c = &l->at[i];
		int ret;

		n = run_length(l, i, RUN_BYTES);
		for (size_t j = 0; n > 1 && j < n; j++)
			memcpy(buf + j * size, c[j].data, size);
		ret = btrkit_io_write(c->io, c->physical, n > 1 ? buf : c->data, n * size, err);
		if (ret) {
			err_at_device(err, c->devid, c->physical);
			return ret;
		}
		stats->writes++;
		stats->bytes_written += n * size;
	}
	return 0;
}

int commit_flush(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const struct volume *v = txn->fs->volume;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct volume_device d = volume_device(v, i);
		int ret = btrkit_io_flush(d.io, err);

		if (ret) {
			err_at_device(err, d.devid, 0);
			if (err)
				err->places &= ~(unsigned)BTRKIT_AT_PHYSICAL;
			return ret;
		}
		txn->writer->stats.barriers++;
	}
	return 0;
}

int commit_write_blocks(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct block_list l = { .txn = txn };
	uint8_t *buf = NULL;
	int ret;

	ret = overlay_seal(txn->overlay, add_copies, &l, err);
	if (!ret && l.n)
		qsort(l.at, l.n, sizeof(*l.at), by_place);
	if (!ret)
		ret = reserve(&l, err);
	if (!ret) {
		buf = malloc(RUN_BYTES);
		ret = buf ? write_runs(&l, buf, err) : err_nomem(err);
	}
	free(buf);
	free(l.at);
	return ret ? ret : commit_flush(txn, err);
}
