// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The blocks of a transaction reach the devices: in the order of addresses, neighbours as one write. Where there is
 * parity that is whole rows, in which space.h gives nothing to anybody else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/txn/commit.h"
#include "lib/txn/data.h"
#include "lib/volume/row_write.h"

#define RUN_BYTES (1u << 20)

/* One copy of a block, or a piece of it. */
struct block_copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	uint64_t length;
	const uint8_t *data;
};

/* What goes into rows with parity. */
struct row_piece {
	uint64_t logical;
	size_t length;
	const uint8_t *data;
};

struct block_list {
	struct btrkit_txn *txn;
	struct block_copy *at;
	size_t n, size;
	struct row_piece *pieces;
	size_t num_pieces, pieces_size;
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

static int add_piece(struct block_list *l, uint64_t logical, const uint8_t *data, size_t length,
		     struct btrkit_error *err)
{
	if (l->num_pieces == l->pieces_size) {
		const size_t size = l->pieces_size ? 2 * l->pieces_size : 64;
		struct row_piece *more = reallocarray(l->pieces, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		l->pieces = more;
		l->pieces_size = size;
	}
	l->pieces[l->num_pieces++] = (struct row_piece){ logical, length, data };
	return 0;
}

static int add_copies(void *ctx, const struct node *node, struct btrkit_error *err)
{
	struct block_list *l = ctx;

	if (row_wanted(l->txn->fs->volume, node->bytenr))
		return add_piece(l, node->bytenr, node->data, node->size, err);
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

static int by_address(const void *a, const void *b)
{
	const struct row_piece *x = a, *y = b;

	return x->logical < y->logical ? -1 : x->logical > y->logical;
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

/* All rows, or room for them. */
static int put_rows(const struct block_list *l, bool only_reserve, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &l->txn->writer->stats;
	struct row_writer *w;
	int ret;

	if (!l->num_pieces)
		return 0;
	ret = row_writer_create(l->txn->fs->volume, only_reserve, &w, err);
	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < l->num_pieces; i++)
		ret = row_writer_put(w, l->pieces[i].logical, l->pieces[i].data, l->pieces[i].length, err);
	if (!ret)
		ret = row_writer_finish(w, err);
	stats->writes += only_reserve ? 0 : row_writer_written(w).writes;
	stats->bytes_written += only_reserve ? 0 : row_writer_written(w).bytes;
	row_writer_destroy(w);
	return ret;
}

static int collect(struct block_list *l, struct btrkit_error *err)
{
	int ret = overlay_seal(l->txn->overlay, add_copies, l, err);

	for (const struct txn_data *d = l->txn->data; !ret && d; d = d->next)
		ret = add_piece(l, d->logical, d->bytes, d->length, err);
	if (!ret && l->n)
		qsort(l->at, l->n, sizeof(*l->at), by_place);
	if (!ret && l->num_pieces)
		qsort(l->pieces, l->num_pieces, sizeof(*l->pieces), by_address);
	return ret;
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

	ret = collect(&l, err);
	if (!ret)
		ret = reserve(&l, err);
	if (!ret)
		ret = put_rows(&l, true, err);
	if (!ret) {
		buf = malloc(RUN_BYTES);
		ret = buf ? write_runs(&l, buf, err) : err_nomem(err);
	}
	if (!ret)
		ret = put_rows(&l, false, err);
	free(buf);
	free(l.at);
	free(l.pieces);
	return ret ? ret : commit_flush(txn, err);
}
