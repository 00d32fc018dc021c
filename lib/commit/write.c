// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes the blocks of a transaction in address order, adjacent ones together. Threads seal and assemble blocks while
 * those before are being written. In chunks with parity, full stripes are written; space.h allocates nothing else in
 * them.
 */
#include "lib/commit/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/base/pipeline.h"
#include "lib/commit/data.h"
#include "lib/commit/supers.h"
#include "lib/volume/full_stripe.h"

/* Size of the blocks that a thread takes at a time. A smaller total is not worth a thread. */
#define UNIT_BYTES (1u << 20)
#define UNITS 8u

/* Maximum number of leaves written at a time before the commit. */
#define EARLY_LEAVES 256u
/* Fraction of the blocks allowed in memory that is written at a time. */
#define EARLY_PART 8u

/* A copy of a block, or a part of it. */
struct block_copy {
	struct btrkit_io *io;
	uint64_t devid;
	uint64_t physical;
	uint64_t length;
	const uint8_t *data;
};

/* Part of a full stripe with parity. */
struct full_stripe_piece {
	uint64_t logical;
	size_t length;
	const uint8_t *data;
	size_t age; /* larger for data that was written earlier */
};

/* Blocks that are written together, and the copies of those that are not in full stripes. */
struct unit {
	const struct sort_entry *blocks;
	size_t num_blocks;
	struct block_copy *at;
	size_t n, size;
	uint8_t *buf; /* the copies, one after the other */
	size_t buf_size;
};

struct writing {
	struct btrkit_txn *txn;
	struct sort_entry *blocks; /* by address */
	size_t num_blocks;
	struct full_stripe_piece *pieces;
	size_t num_pieces, pieces_size;
};

static int grow(struct unit *u, struct btrkit_error *err)
{
	const size_t size = u->size ? 2 * u->size : 64;
	struct block_copy *more = reallocarray(u->at, size, sizeof(*more));

	if (!more)
		return err_nomem(err);
	u->at = more;
	u->size = size;
	return 0;
}

/*
 * Adds a copy of a block, which striped profiles may divide into pieces. Those on missing devices are left out: a
 * filesystem with missing devices is written only if each chunk has another copy.
 * @return 0; 1: there is no such copy; <0
 */
static int add_copy(const struct volume *v, struct unit *u, const struct node *node, unsigned mirror,
		    struct btrkit_error *err)
{
	for (uint32_t done = 0; done < node->size;) {
		struct copy copy;
		int ret = volume_map(v, node->bytenr + done, node->size - done, mirror, &copy, err);

		if (!ret && copy.io && u->n == u->size)
			ret = grow(u, err);
		if (ret)
			return ret;
		if (copy.io)
			u->at[u->n++] = (struct block_copy){ copy.io, copy.devid, copy.physical, copy.length,
							     node->data + done };
		done += (uint32_t)copy.length;
	}
	return 0;
}

static int add_piece(struct writing *w, uint64_t logical, const uint8_t *data, size_t length,
		     struct btrkit_error *err)
{
	if (w->num_pieces == w->pieces_size) {
		const size_t size = w->pieces_size ? 2 * w->pieces_size : 64;
		struct full_stripe_piece *more = reallocarray(w->pieces, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		w->pieces = more;
		w->pieces_size = size;
	}
	w->pieces[w->num_pieces] = (struct full_stripe_piece){ logical, length, data, w->num_pieces };
	w->num_pieces++;
	return 0;
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
	const struct full_stripe_piece *x = a, *y = b;

	return x->logical < y->logical ? -1 : x->logical > y->logical;
}

static int by_age(const void *a, const void *b)
{
	const struct full_stripe_piece *x = a, *y = b;

	return x->age > y->age ? -1 : x->age < y->age;
}

/* Determines and sorts the locations of the unit's blocks. */
static int map_unit(const struct writing *w, struct unit *u, struct btrkit_error *err)
{
	const struct volume *v = w->txn->fs->volume;

	u->n = 0;
	for (size_t i = 0; i < u->num_blocks; i++) {
		const struct node *node = u->blocks[i].what;
		int ret = full_stripe_wanted(v, node->bytenr) ? 1 : 0;

		for (unsigned mirror = 0; !ret; mirror++)
			ret = add_copy(v, u, node, mirror, err);
		if (ret < 0)
			return ret;
	}
	if (u->n)
		qsort(u->at, u->n, sizeof(*u->at), by_place);
	return 0;
}

/* Number of copies from @i on that are contiguous. @bytes: their total size */
static size_t run_length(const struct unit *u, size_t i, size_t *bytes)
{
	size_t n = 1;

	*bytes = u->at[i].length;
	while (i + n < u->n && u->at[i + n].devid == u->at[i].devid &&
	       u->at[i + n].physical == u->at[i].physical + *bytes)
		*bytes += u->at[i + n++].length;
	return n;
}

/* Notice a full disk below a sparse image before anything is written. */
static int reserve(const struct writing *w, struct btrkit_error *err)
{
	struct unit all = { .blocks = w->blocks, .num_blocks = w->num_blocks };
	int ret = map_unit(w, &all, err);

	for (size_t i = 0, n; !ret && i < all.n; i += n) {
		const struct block_copy *c = &all.at[i];
		size_t bytes;

		n = run_length(&all, i, &bytes);
		ret = btrkit_io_reserve(c->io, c->physical, bytes, err);
		if (ret)
			err_at_device(err, c->devid, c->physical);
	}
	free(all.at);
	return ret;
}

static int make_buffer(struct unit *u, struct btrkit_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < u->n; i++)
		bytes += u->at[i].length;
	if (bytes <= u->buf_size)
		return 0;
	free(u->buf);
	u->buf = malloc(bytes);
	u->buf_size = u->buf ? bytes : 0;
	return u->buf ? 0 : err_nomem(err);
}

/* Seals the unit's blocks, and copies them to the buffer in order of their locations. */
static int prepare(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct writing *w = ctx;
	struct unit *u = slot;
	uint8_t *to;
	int ret = 0;

	for (size_t i = 0; !ret && i < u->num_blocks; i++)
		ret = overlay_seal(w->txn->overlay, u->blocks[i].what, err);
	if (!ret)
		ret = map_unit(w, u, err);
	if (!ret)
		ret = make_buffer(u, err);
	to = u->buf;
	for (size_t i = 0; !ret && i < u->n; to += u->at[i++].length)
		memcpy(to, u->at[i].data, u->at[i].length);
	return ret;
}

static int write_unit(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct writing *w = ctx;
	struct btrkit_write_stats *stats = &w->txn->writer->stats;
	const struct unit *u = slot;
	const uint8_t *from = u->buf;
	size_t bytes;

	for (size_t i = 0; i < u->n; from += bytes) {
		const struct block_copy *c = &u->at[i];
		int ret;

		i += run_length(u, i, &bytes);
		ret = btrkit_io_write(c->io, c->physical, from, bytes, err);
		if (ret) {
			err_at_device(err, c->devid, c->physical);
			return ret;
		}
		stats->writes++;
		stats->bytes_written += bytes;
	}
	return 0;
}

static int give_out(const struct writing *w, struct pipeline *p, struct btrkit_error *err)
{
	const size_t each = UNIT_BYTES / w->txn->fs->geometry.nodesize;

	for (size_t i = 0; i < w->num_blocks; i += each) {
		struct unit *u;
		void *slot;
		int ret = pipeline_next(p, &slot, err);

		if (ret)
			return ret;
		u = slot;
		u->blocks = w->blocks + i;
		u->num_blocks = w->num_blocks - i < each ? w->num_blocks - i : each;
		pipeline_submit(p);
	}
	return pipeline_drain(p, err);
}

static int write_units(struct writing *w, struct btrkit_error *err)
{
	const struct pipeline_ops ops = { prepare, write_unit, w };
	const bool alone = w->num_blocks * (uint64_t)w->txn->fs->geometry.nodesize <= UNIT_BYTES;
	struct unit units[UNITS] = { 0 };
	struct pipeline *p = NULL;
	void *slots[UNITS];
	int ret;

	for (unsigned i = 0; i < UNITS; i++)
		slots[i] = &units[i];
	ret = pipeline_create(&ops, alone ? 0 : each_processor(), slots, alone ? 1 : UNITS, &p, err);
	/* Without threads it works, too. */
	if (ret == -EAGAIN)
		ret = pipeline_create(&ops, 0, slots, UNITS, &p, err);
	if (!ret)
		ret = give_out(w, p, err);
	pipeline_destroy(p);
	for (unsigned i = 0; i < UNITS; i++) {
		free(units[i].at);
		free(units[i].buf);
	}
	return ret;
}

/* Writes all full stripes, or reserves space for them. */
static int put_full_stripes(const struct writing *w, bool only_reserve, struct btrkit_error *err)
{
	struct btrkit_write_stats *stats = &w->txn->writer->stats;
	struct full_stripe_writer *full_stripes;
	int ret;

	if (!w->num_pieces)
		return 0;
	ret = full_stripe_create(w->txn->fs->volume, only_reserve, &full_stripes, err);
	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < w->num_pieces; i++)
		ret = full_stripe_put(full_stripes, w->pieces[i].logical, w->pieces[i].data, w->pieces[i].length, err);
	if (!ret)
		ret = full_stripe_finish(full_stripes, err);
	stats->writes += only_reserve ? 0 : full_stripe_written(full_stripes).writes;
	stats->bytes_written += only_reserve ? 0 : full_stripe_written(full_stripes).bytes;
	full_stripe_destroy(full_stripes);
	return ret;
}

/* Makes one piece of the first @n, which overlap and end at @end. */
static int merge(struct writing *w, struct full_stripe_piece *pieces, size_t n, uint64_t end, struct btrkit_error *err)
{
	const uint64_t start = pieces->logical;
	struct txn_data *d = malloc(sizeof(*d) + (size_t)(end - start));

	if (!d)
		return err_nomem(err);
	*d = (struct txn_data){ .next = w->txn->data, .logical = start, .length = (size_t)(end - start) };
	w->txn->data = d;
	w->txn->data_bytes += sizeof(*d) + d->length;
	qsort(pieces, n, sizeof(*pieces), by_age);
	for (size_t i = 0; i < n; i++)
		memcpy(d->bytes + (pieces[i].logical - start), pieces[i].data, pieces[i].length);
	*pieces = (struct full_stripe_piece){ start, d->length, d->bytes, 0 };
	return 0;
}

/* A write to preallocated space that fails leaves its data, and the space may have been written again since. */
static int merge_pieces(struct writing *w, struct btrkit_error *err)
{
	struct full_stripe_piece *p = w->pieces;
	size_t left = 0;
	int ret = 0;

	for (size_t i = 0, n; !ret && i < w->num_pieces; i += n) {
		uint64_t end = p[i].logical + p[i].length;

		for (n = 1; i + n < w->num_pieces && p[i + n].logical < end; n++)
			if (end < p[i + n].logical + p[i + n].length)
				end = p[i + n].logical + p[i + n].length;
		if (n > 1)
			ret = merge(w, &p[i], n, end, err);
		p[left++] = p[i];
	}
	w->num_pieces = left;
	return ret;
}

/* Collects the blocks and data that are in full stripes. The list of data begins with the latest. */
static int collect_pieces(struct writing *w, struct btrkit_error *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < w->num_blocks; i++) {
		const struct node *node = w->blocks[i].what;

		if (full_stripe_wanted(w->txn->fs->volume, node->bytenr))
			ret = add_piece(w, node->bytenr, node->data, node->size, err);
	}
	for (const struct txn_data *d = w->txn->data; !ret && d; d = d->next)
		ret = add_piece(w, d->logical, d->bytes, d->length, err);
	if (!ret && w->num_pieces) {
		qsort(w->pieces, w->num_pieces, sizeof(*w->pieces), by_address);
		ret = merge_pieces(w, err);
	}
	return ret;
}

int commit_flush(struct btrkit_txn *txn, struct btrkit_error *err)
{
	const struct volume *v = txn->fs->volume;

	for (size_t i = 0; i < volume_num_devices(v); i++) {
		const struct volume_device d = volume_device(v, i);
		int ret;

		if (!d.io)
			continue;
		ret = btrkit_io_flush(d.io, err);
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

/* Excludes leaves in full stripes with parity, which are written with the rest of their full stripe. */
static size_t leave_out_full_stripes(const struct volume *v, struct sort_entry *leaves, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (!full_stripe_wanted(v, ((const struct node *)leaves[i].what)->bytenr))
			leaves[left++] = leaves[i];
	return left;
}

int txn_write_early(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct overlay *o = txn->overlay;
	struct sort_entry leaves[EARLY_LEAVES];
	struct writing w = { .txn = txn, .blocks = leaves };
	const uint64_t wanted = txn->early_bytes / txn->fs->geometry.nodesize / EARLY_PART;
	const size_t n = wanted < 2 ? 2 : wanted < EARLY_LEAVES ? (size_t)wanted : EARLY_LEAVES;
	int ret;

	/* The latest leaves are still being filled. */
	if (overlay_in_memory(o) * txn->fs->geometry.nodesize < txn->early_bytes || o->num_young < n)
		return 0;
	w.num_blocks = overlay_take_full(o, n / 2, leaves, n);
	w.num_blocks = leave_out_full_stripes(txn->fs->volume, leaves, w.num_blocks);
	if (!w.num_blocks)
		return 0;
	sort_entries(leaves, w.num_blocks);
	ret = commit_supers_check(txn->fs, err);
	if (!ret)
		ret = reserve(&w, err);
	if (!ret)
		ret = write_units(&w, err);
	if (!ret)
		overlay_put_away(o, leaves, w.num_blocks);
	return ret;
}

int commit_write_blocks(struct btrkit_txn *txn, struct btrkit_error *err)
{
	struct writing w = { .txn = txn };
	int ret;

	ret = overlay_blocks(txn->overlay, &w.blocks, &w.num_blocks, err);
	if (!ret)
		ret = collect_pieces(&w, err);
	if (!ret)
		ret = reserve(&w, err);
	if (!ret)
		ret = put_full_stripes(&w, true, err);
	if (!ret)
		ret = write_units(&w, err);
	if (!ret)
		ret = put_full_stripes(&w, false, err);
	free(w.blocks);
	free(w.pieces);
	return ret ? ret : commit_flush(txn, err);
}
