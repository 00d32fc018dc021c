// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading. A range can be had in several ways, its views: each copy is one; with parity the strips that are wanted can
 * be rebuilt from all others, and with two parities from all others but one, whichever that is. The caller's judgement
 * says which view is right.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"
#include "lib/volume/parity.h"
#include "lib/volume/trial.h"
#include "lib/volume/volume_impl.h"

/* How many views there are of ranges in a chunk. A row that is too wide for parity gives no more than its copies. */
static unsigned num_views(const struct volume_chunk *m)
{
	const struct raid_profile *p = raid_profile_find(m->type);

	if (!p->parity || !parity_available() || m->num_stripes - p->parity > PARITY_STRIPS_MAX)
		return p->copies;
	return p->parity == 1 ? 2 : 2 + m->num_stripes - 1;
}

/* How a range is read. */
struct how {
	const struct volume *v;
	const struct volume_chunk *m;
	bool fresh;  /* only from devices that no other has left behind */
	bool judged; /* the caller sees what is wrong */
};

static int read_stripe(const struct how *h, unsigned stripe, uint64_t offset, void *buf, size_t len,
		       struct btrkit_error *err)
{
	const struct volume_stripe *s = &h->m->stripes[stripe];
	struct device *d = &h->v->devices[s->device];
	int ret;

	if (!d->is.io)
		ret = err_set(err, BTRKIT_IO, "device is missing");
	else if (h->fresh && d->stale)
		ret = err_set(err, BTRKIT_IO, "device has an older generation than others");
	else
		ret = btrkit_io_read(d->is.io, s->physical + offset, buf, len, err);
	if (ret) {
		if (d->is.io && !(h->fresh && d->stale))
			atomic_fetch_add(&d->read_errors, 1);
		err_at_device(err, d->is.devid, s->physical + offset);
	}
	return ret;
}

/*
 * Rebuilds a piece of one strip from the others of its row. Number @without of them (from 1; 0: none) is left out, as
 * are those that cannot be read.
 */
static int rebuild(const struct how *h, uint64_t offset, unsigned without, uint8_t *buf, size_t len,
		   struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const struct raid_place place = raid_map(&shape, offset, 0);
	const unsigned data = raid_data_stripes(&shape), n = h->m->num_stripes;
	const uint64_t row = place.offset / CHUNK_STRIPE_LEN;
	const unsigned want = (unsigned)(offset / CHUNK_STRIPE_LEN % data);
	uint8_t **strips = calloc(n, sizeof(*strips)), *bytes = io_buffer((size_t)n * len);
	unsigned other = 0;
	int ret;

	if (!strips || !bytes) {
		free(strips);
		free(bytes);
		return err_nomem(err);
	}
	for (unsigned i = 0; i < n; i++) {
		const unsigned stripe = raid_strip_stripe(&shape, row, i);
		uint8_t *to = bytes + (size_t)i * len;

		if (i == want || ++other == without)
			continue;
		/* Parity of one time and strips of another give what never was, which somebody has to see. */
		if (!h->judged && h->v->devices[h->m->stripes[stripe].device].stale)
			continue;
		if (!read_stripe(h, stripe, place.offset, to, len, NULL))
			strips[i] = to;
	}
	ret = parity_rebuild(data, len, strips, n - data == 2, want, buf, err);
	free(strips);
	free(bytes);
	return ret;
}

static int read_view(const struct how *h, uint64_t offset, unsigned view, uint8_t *buf, size_t len,
		     struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const unsigned copies = raid_copies(&shape);

	while (len) {
		const struct raid_place place = raid_map(&shape, offset, view < copies ? view : 0);
		const size_t n = place.length < len ? (size_t)place.length : len;
		int ret;

		ret = view < copies ? read_stripe(h, place.stripe, place.offset, buf, n, err) :
				      rebuild(h, offset, view - copies, buf, n, err);
		if (ret)
			return ret;
		offset += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* A copy was read and is not what it should be. */
static void blame_copy(const struct how *h, uint64_t offset, unsigned view, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const struct raid_place place = raid_map(&shape, offset, view);
	const struct volume_stripe *s = &h->m->stripes[place.stripe];

	atomic_fetch_add(&h->v->devices[s->device].damaged, 1);
	err_at_device(err, h->v->devices[s->device].is.devid, s->physical + place.offset);
}

/*
 * What the others give was wrong with a strip of the row and right without it, so that is another bad one. The strip
 * could be read, or both would have been the same.
 */
static void blame_left_out(const struct how *h, uint64_t offset, unsigned without, struct trial *t)
{
	const struct raid_shape shape = shape_of(h->m);
	const struct raid_place place = raid_map(&shape, offset, 0);
	const unsigned want = (unsigned)(offset / CHUNK_STRIPE_LEN % raid_data_stripes(&shape));
	const unsigned strip = without - 1 + (without > want);
	const struct volume_stripe *s =
		&h->m->stripes[raid_strip_stripe(&shape, place.offset / CHUNK_STRIPE_LEN, strip)];

	atomic_fetch_add(&h->v->devices[s->device].damaged, 1);
	trial_left_out(t, s->devid, s->physical + place.offset);
}

int volume_read(const struct volume *v, uint64_t logical, void *buf, size_t len, volume_verify_fn verify, void *ctx,
		struct btrkit_error *err)
{
	struct how h = { .v = v, .judged = true };
	struct trial t;
	unsigned copies;
	uint64_t offset;
	int ret;

	ret = volume_find(v, logical, len, &h.m, err);
	if (ret)
		return ret;
	offset = logical - h.m->logical;
	copies = raid_profile_find(h.m->type)->copies;
	trial_begin(&t, v, h.m, logical, len, false);
	for (unsigned view = 0; view < num_views(h.m); view++) {
		struct btrkit_error e = BTRKIT_ERROR_INIT;

		ret = read_view(&h, offset, view, buf, len, &e);
		if (!ret) {
			ret = verify(ctx, buf, &e);
			if (ret && view < copies)
				blame_copy(&h, offset, view, &e);
		}
		if (!ret) {
			if (view > copies)
				blame_left_out(&h, offset, view - copies, &t);
			if (view)
				trial_served(&t, view);
			return 0;
		}
		trial_failed(&t, view, ret, &e);
	}
	return trial_lost(&t, err);
}

/* The same of what lies in one strip and has no judge. */
static int read_strip(struct how *h, uint64_t offset, uint8_t *to, size_t len, struct btrkit_error *err)
{
	struct trial t;

	trial_begin(&t, h->v, h->m, h->m->logical + offset, len, h->fresh);
	for (unsigned view = 0; view < num_views(h->m); view++) {
		struct btrkit_error e = BTRKIT_ERROR_INIT;
		int ret = read_view(h, offset, view, to, len, &e);

		if (!ret) {
			if (view)
				trial_served(&t, view);
			return 0;
		}
		trial_failed(&t, view, ret, &e);
	}
	/* There may be another way yet. */
	return h->fresh ? t.ret : trial_lost(&t, err);
}

int volume_read_any(const struct volume *v, uint64_t logical, void *buf, size_t len, struct btrkit_error *err)
{
	struct how h = { .v = v };
	struct raid_shape shape;
	uint8_t *to = buf;
	int ret;

	ret = volume_find(v, logical, len, &h.m, err);
	if (ret)
		return ret;
	shape = shape_of(h.m);
	while (len) {
		const uint64_t offset = logical - h.m->logical;
		const struct raid_place place = raid_map(&shape, offset, 0);
		const size_t n = place.length < len ? (size_t)place.length : len;

		h.fresh = v->some_stale;
		ret = read_strip(&h, offset, to, n, err);
		if (ret && h.fresh) {
			h.fresh = false;
			ret = read_strip(&h, offset, to, n, err);
		}
		if (ret)
			return ret;
		logical += n;
		to += n;
		len -= n;
	}
	return 0;
}

struct volume_errors volume_errors(const struct volume *v, size_t device)
{
	struct device *d = &v->devices[device];

	return (struct volume_errors){ atomic_load(&d->read_errors), atomic_load(&d->damaged) };
}
