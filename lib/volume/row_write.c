// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/row_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume_impl.h"

#define RUN_BYTES (4u << 20) /* total of all stripes; a single row may be larger */

struct row_writer {
	const struct volume *v;
	bool reserve;
	const struct volume_chunk *chunk; /* of the pending rows; NULL: none are pending */
	unsigned data;			  /* number of its data stripes */
	uint64_t first;			  /* first pending row */
	unsigned rows, rows_max;
	/* Room for rows_max strips of each stripe. */
	uint8_t *buf;
	size_t size;
	unsigned order[PARITY_STRIPS_MAX + 2]; /* stripes, sorted by device */
	struct row_writes written;
};

bool row_wanted(const struct volume *v, uint64_t logical)
{
	const struct volume_chunk *c;

	return !volume_find(v, logical, 1, &c, NULL) && raid_profile_find(c->type)->parity;
}

int row_writer_create(const struct volume *v, bool reserve, struct row_writer **ret, struct btrkit_error *err)
{
	struct row_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(err);
	w->v = v;
	w->reserve = reserve;
	*ret = w;
	return 0;
}

struct row_writer *row_writer_destroy(struct row_writer *w)
{
	if (w)
		free(w->buf);
	free(w);
	return NULL;
}

struct row_writes row_writer_written(const struct row_writer *w)
{
	return w->written;
}

static uint8_t *strip(const struct row_writer *w, unsigned stripe, unsigned row)
{
	return w->buf + ((size_t)stripe * w->rows_max + row) * CHUNK_STRIPE_LEN;
}

static int make_parity(struct row_writer *w, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(w->chunk);
	uint8_t *strips[PARITY_STRIPS_MAX + 2];
	int ret = 0;

	for (unsigned row = 0; !ret && row < w->rows; row++) {
		for (unsigned i = 0; i < shape.num_stripes; i++)
			strips[i] = strip(w, raid_strip_stripe(&shape, w->first + row, i), row);
		ret = parity_generate(w->data, CHUNK_STRIPE_LEN, strips, strips[w->data],
				      shape.num_stripes > w->data + 1 ? strips[w->data + 1] : NULL, err);
	}
	return ret;
}

/* Write the pending rows of one stripe. */
static int write_stripe(struct row_writer *w, unsigned stripe, struct btrkit_error *err)
{
	const struct volume_stripe *s = &w->chunk->stripes[stripe];
	const uint64_t physical = s->physical + w->first * CHUNK_STRIPE_LEN;
	const size_t bytes = (size_t)w->rows * CHUNK_STRIPE_LEN;
	struct btrkit_io *io = w->v->devices[s->device].is.io;
	int ret;

	if (!io)
		ret = err_set(err, BTRKIT_INVALID, "cannot write a row with parity without device %" PRIu64,
			      s->devid);
	else if (w->reserve)
		ret = btrkit_io_reserve(io, physical, bytes, err);
	else
		ret = btrkit_io_write(io, physical, strip(w, stripe, 0), bytes, err);
	if (ret) {
		err_at_device(err, s->devid, physical);
		return ret;
	}
	w->written.writes++;
	w->written.bytes += bytes;
	return 0;
}

int row_writer_finish(struct row_writer *w, struct btrkit_error *err)
{
	int ret = 0;

	if (!w->chunk)
		return 0;
	if (!w->reserve)
		ret = make_parity(w, err);
	for (unsigned i = 0; !ret && i < w->chunk->num_stripes; i++)
		ret = write_stripe(w, w->order[i], err);
	w->chunk = NULL;
	return ret;
}

static void sort_stripes(struct row_writer *w)
{
	const struct volume_stripe *s = w->chunk->stripes;

	for (unsigned i = 0; i < w->chunk->num_stripes; i++) {
		unsigned at = i;

		for (; at && s[w->order[at - 1]].devid > s[i].devid; at--)
			w->order[at] = w->order[at - 1];
		w->order[at] = i;
	}
}

static int begin(struct row_writer *w, const struct volume_chunk *c, uint64_t row, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(c);
	const unsigned data = raid_data_stripes(&shape);
	const size_t row_bytes = (size_t)c->num_stripes * CHUNK_STRIPE_LEN;
	const unsigned rows = row_bytes < RUN_BYTES ? (unsigned)(RUN_BYTES / row_bytes) : 1;

	if (data > PARITY_STRIPS_MAX)
		return err_set(err, BTRKIT_UNSUPPORTED, "chunk %" PRIu64 " has too many data stripes for parity: %u",
			       c->logical, data);
	if (!w->reserve && w->size < rows * row_bytes) {
		uint8_t *more = realloc(w->buf, rows * row_bytes);

		if (!more)
			return err_nomem(err);
		w->buf = more;
		w->size = rows * row_bytes;
	}
	w->chunk = c;
	w->data = data;
	w->first = row;
	w->rows = 0;
	w->rows_max = rows;
	sort_stripes(w);
	return 0;
}

/* Add a zeroed row. */
static void add_row(struct row_writer *w)
{
	for (unsigned i = 0; !w->reserve && i < w->chunk->num_stripes; i++)
		memset(strip(w, i, w->rows), 0, CHUNK_STRIPE_LEN);
	w->rows++;
}

/* Make the row one of the pending rows. */
static int take_row(struct row_writer *w, const struct volume_chunk *c, uint64_t row, struct btrkit_error *err)
{
	int ret = 0;

	if (w->chunk != c || row < w->first || row > w->first + w->rows || row - w->first == w->rows_max) {
		ret = row_writer_finish(w, err);
		if (!ret)
			ret = begin(w, c, row, err);
	}
	if (!ret && row - w->first == w->rows)
		add_row(w);
	return ret;
}

int row_writer_put(struct row_writer *w, uint64_t logical, const void *data, size_t len, struct btrkit_error *err)
{
	const struct volume_chunk *c;
	struct raid_shape shape;
	int ret = volume_find(w->v, logical, len, &c, err);

	if (ret)
		return ret;
	shape = shape_of(c);
	if (!raid_profile_find(c->type)->parity)
		return err_corrupt(err, NULL, "chunk %" PRIu64 " has no parity", c->logical);
	for (size_t done = 0; !ret && done < len;) {
		const struct raid_place place = raid_map(&shape, logical + done - c->logical, 0);
		const size_t n = place.length < len - done ? (size_t)place.length : len - done;
		const uint64_t row = place.offset / CHUNK_STRIPE_LEN;

		ret = take_row(w, c, row, err);
		if (!ret && !w->reserve)
			memcpy(strip(w, place.stripe, (unsigned)(row - w->first)) + place.offset % CHUNK_STRIPE_LEN,
			       (const uint8_t *)data + done, n);
		done += n;
	}
	return ret;
}
