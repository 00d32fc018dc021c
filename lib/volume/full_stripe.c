// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/full_stripe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume_impl.h"

#define RUN_BYTES (4u << 20) /* total of all stripes; a single full stripe may be larger */

struct full_stripe_writer {
	const struct volume *v;
	bool reserve;
	const struct volume_chunk *chunk; /* of the pending full stripes; NULL: none are pending */
	unsigned data;			  /* number of its data stripes */
	uint64_t first;			  /* first pending full stripe */
	unsigned full_stripes, full_stripes_max;
	/* Room for full stripes max strips of each stripe. */
	uint8_t *buf;
	size_t size;
	unsigned order[PARITY_STRIPS_MAX + 2]; /* stripes, sorted by device */
	struct full_stripe_writes written;
};

bool full_stripe_wanted(const struct volume *v, uint64_t logical)
{
	const struct volume_chunk *c;

	return !volume_find(v, logical, 1, &c, NULL) && raid_profile_find(c->type)->parity;
}

int full_stripe_create(const struct volume *v, bool reserve, struct full_stripe_writer **ret, struct btrkit_error *err)
{
	struct full_stripe_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return err_nomem(err);
	w->v = v;
	w->reserve = reserve;
	*ret = w;
	return 0;
}

struct full_stripe_writer *full_stripe_destroy(struct full_stripe_writer *w)
{
	if (w)
		free(w->buf);
	free(w);
	return NULL;
}

struct full_stripe_writes full_stripe_written(const struct full_stripe_writer *w)
{
	return w->written;
}

static uint8_t *strip(const struct full_stripe_writer *w, unsigned stripe, unsigned full_stripe)
{
	return w->buf + ((size_t)stripe * w->full_stripes_max + full_stripe) * CHUNK_STRIPE_LEN;
}

static int make_parity(struct full_stripe_writer *w, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(w->chunk);
	uint8_t *strips[PARITY_STRIPS_MAX + 2];
	int ret = 0;

	for (unsigned full_stripe = 0; !ret && full_stripe < w->full_stripes; full_stripe++) {
		for (unsigned i = 0; i < shape.num_stripes; i++)
			strips[i] = strip(w, raid_strip_stripe(&shape, w->first + full_stripe, i), full_stripe);
		ret = parity_generate(w->data, CHUNK_STRIPE_LEN, strips, strips[w->data],
				      shape.num_stripes > w->data + 1 ? strips[w->data + 1] : NULL, err);
	}
	return ret;
}

/* Writes the pending full stripes of one stripe, unless its device is missing: parity will rebuild it. */
static int write_stripe(struct full_stripe_writer *w, unsigned stripe, struct btrkit_error *err)
{
	const struct volume_stripe *s = &w->chunk->stripes[stripe];
	const uint64_t physical = s->physical + w->first * CHUNK_STRIPE_LEN;
	const size_t bytes = (size_t)w->full_stripes * CHUNK_STRIPE_LEN;
	struct btrkit_io *io = w->v->devices[s->device].is.io;
	int ret;

	if (!io)
		return 0;
	if (w->reserve)
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

int full_stripe_finish(struct full_stripe_writer *w, struct btrkit_error *err)
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

static void sort_stripes(struct full_stripe_writer *w)
{
	const struct volume_stripe *s = w->chunk->stripes;

	for (unsigned i = 0; i < w->chunk->num_stripes; i++) {
		unsigned at = i;

		for (; at && s[w->order[at - 1]].devid > s[i].devid; at--)
			w->order[at] = w->order[at - 1];
		w->order[at] = i;
	}
}

static int begin(struct full_stripe_writer *w, const struct volume_chunk *c, uint64_t full_stripe,
		 struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(c);
	const unsigned data = raid_data_stripes(&shape);
	const size_t full_stripe_bytes = (size_t)c->num_stripes * CHUNK_STRIPE_LEN;
	const unsigned full_stripes = full_stripe_bytes < RUN_BYTES ? (unsigned)(RUN_BYTES / full_stripe_bytes) : 1;

	if (data > PARITY_STRIPS_MAX)
		return err_set(err, BTRKIT_UNSUPPORTED, "chunk %" PRIu64 " has too many data stripes for parity: %u",
			       c->logical, data);
	if (!w->reserve && w->size < full_stripes * full_stripe_bytes) {
		uint8_t *more = realloc(w->buf, full_stripes * full_stripe_bytes);

		if (!more)
			return err_nomem(err);
		w->buf = more;
		w->size = full_stripes * full_stripe_bytes;
	}
	w->chunk = c;
	w->data = data;
	w->first = full_stripe;
	w->full_stripes = 0;
	w->full_stripes_max = full_stripes;
	sort_stripes(w);
	return 0;
}

/* Adds a zeroed full stripe. */
static void add_full_stripe(struct full_stripe_writer *w)
{
	for (unsigned i = 0; !w->reserve && i < w->chunk->num_stripes; i++)
		memset(strip(w, i, w->full_stripes), 0, CHUNK_STRIPE_LEN);
	w->full_stripes++;
}

/* Makes the full stripe one of the pending full stripes. */
static int take_full_stripe(struct full_stripe_writer *w, const struct volume_chunk *c, uint64_t full_stripe,
			    struct btrkit_error *err)
{
	int ret = 0;

	if (w->chunk != c || full_stripe < w->first || full_stripe > w->first + w->full_stripes ||
	    full_stripe - w->first == w->full_stripes_max) {
		ret = full_stripe_finish(w, err);
		if (!ret)
			ret = begin(w, c, full_stripe, err);
	}
	if (!ret && full_stripe - w->first == w->full_stripes)
		add_full_stripe(w);
	return ret;
}

int full_stripe_put(struct full_stripe_writer *w, uint64_t logical, const void *data, size_t len,
		    struct btrkit_error *err)
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
		const uint64_t full_stripe = place.offset / CHUNK_STRIPE_LEN;

		ret = take_full_stripe(w, c, full_stripe, err);
		if (!ret && !w->reserve)
			memcpy(strip(w, place.stripe, (unsigned)(full_stripe - w->first)) +
				       place.offset % CHUNK_STRIPE_LEN,
			       (const uint8_t *)data + done, n);
		done += n;
	}
	return ret;
}
