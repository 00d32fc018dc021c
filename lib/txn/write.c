// SPDX-License-Identifier: LGPL-2.1-or-later
/* The blocks of a transaction reach the devices: in the order of addresses, neighbours as one write. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/txn/commit.h"
#include "lib/volume/volume.h"

#define RUN_BYTES (1u << 20)

/* One copy of a block, or a piece of it. */
struct block_copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	uint64_t length;
	const uint8_t *data;
};

struct block_list {
	struct btrkit_txn *txn;
	struct block_copy *at;
	size_t n, size;
};

/* A copy of a block, which striped profiles may have in pieces. @return 0; 1: there is no such copy; <0 */
static int add_copy(struct block_list *l, const struct node *node, unsigned mirror, struct btrkit_error *err)
{
	const struct volume *v = l->txn->fs->volume;

	for (uint32_t done = 0; done < node->size;) {
		struct block_copy *more;
		struct copy copy;
		int ret = volume_map(v, node->bytenr + done, node->size - done, mirror, &copy, err);

		if (ret)
			return ret;
		if (l->n == l->size) {
			l->size = l->size ? 2 * l->size : 64;
			more = reallocarray(l->at, l->size, sizeof(*more));
			if (!more)
				return err_nomem(err);
			l->at = more;
		}
		l->at[l->n++] =
			(struct block_copy){ copy.io, copy.devid, copy.physical, copy.length, node->data + done };
		done += (uint32_t)copy.length;
	}
	return 0;
}

static int add_copies(void *ctx, const struct node *node, struct btrkit_error *err)
{
	struct block_list *l = ctx;

	for (unsigned mirror = 0;; mirror++) {
		const int ret = add_copy(l, node, mirror, err);

		if (ret)
			return ret < 0 ? ret : 0;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct block_copy *x = a, *y = b;

	if (x->devid != y->devid)
		return x->devid < y->devid ? -1 : 1;
	return x->physical < y->physical ? -1 : x->physical > y->physical;
}

/* How many copies from @i on lie one behind the other, up to @max bytes; @bytes gets how many those are. */
static size_t run_length(const struct block_list *l, size_t i, size_t max, size_t *bytes)
{
	size_t n = 1;

	*bytes = l->at[i].length;
	while (i + n < l->n && l->at[i + n].devid == l->at[i].devid &&
	       l->at[i + n].physical == l->at[i].physical + *bytes && *bytes + l->at[i + n].length <= max)
		*bytes += l->at[i + n++].length;
	return n;
}

/* A full disk under a sparse image is met before anything is written. */
static int reserve(const struct block_list *l, struct btrkit_error *err)
{
	for (size_t i = 0, n; i < l->n; i += n) {
		const struct block_copy *c = &l->at[i];
		size_t bytes;
		int ret;

		n = run_length(l, i, SIZE_MAX, &bytes);
		ret = btrkit_io_reserve(c->io, c->physical, bytes, err);
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

	for (size_t i = 0, n; i < l->n; i += n) {
		const struct block_copy *c = &l->at[i];
		size_t bytes, at = 0;
		int ret;

		n = run_length(l, i, RUN_BYTES, &bytes);
		for (size_t j = 0; n > 1 && j < n; at += c[j++].length)
			memcpy(buf + at, c[j].data, c[j].length);
		ret = btrkit_io_write(c->io, c->physical, n > 1 ? buf : c->data, bytes, err);
		if (ret) {
			err_at_device(err, c->devid, c->physical);
			return ret;
		}
		stats->writes++;
		stats->bytes_written += bytes;
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
