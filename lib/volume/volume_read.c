// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading. A range can be read in several ways, numbered as mirrors. Each copy is a mirror. With parity, the data can
 * also be rebuilt from all other strips, and with two parities from all other strips but one, for each choice of that
 * one. The caller's verification decides which mirror is right.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/buffer.h"
#include "lib/volume/parity.h"
#include "lib/volume/trial.h"
#include "lib/volume/volume_impl.h"

/* Number of mirrors of the ranges in a chunk. A full stripe too wide for parity only has its copies. */
static unsigned num_mirrors(const struct volume_chunk *m)
{
	const struct raid_profile *p = raid_profile_find(m->type);

	if (!p->parity || !parity_available() || m->num_stripes - p->parity > PARITY_STRIPS_MAX)
		return p->copies;
	return p->parity == 1 ? 2 : 2 + m->num_stripes - 1;
}

/* Parameters of a read. */
struct how {
	const struct volume *v;
	const struct volume_chunk *m;
	bool fresh;  /* skip stale devices */
	bool checked; /* the caller verifies the data */
};

static int read_stripe(const struct how *h, unsigned stripe, uint64_t offset, void *buf, size_t len,
		       struct btrkit_error *err)
{
	const struct volume_stripe *s = &h->m->stripes[stripe];
	struct device *d = &h->v->devices[s->device];
	int ret;

	if (!d->is.io)
		ret = err_because(err, BTRKIT_CAUSE_DEVICE_MISSING, err_set(err, BTRKIT_IO, "device is missing"));
	else if (h->fresh && d->stale)
		ret = err_because(err, BTRKIT_CAUSE_DEVICE_STALE,
				  err_set(err, BTRKIT_IO, "device has an older generation than others"));
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
 * Rebuilds a piece of a strip from the other strips of its full stripe. Number @without of them (from 1; 0: none) is
 * left out, as are unreadable ones.
 */
static int rebuild(const struct how *h, uint64_t offset, unsigned without, uint8_t *buf, size_t len,
		   struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const struct raid_place place = raid_map(&shape, offset, 0);
	const unsigned data = raid_data_stripes(&shape), n = h->m->num_stripes;
	const uint64_t full_stripe = place.offset / CHUNK_STRIPE_LEN;
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
		const unsigned stripe = raid_strip_stripe(&shape, full_stripe, i);
		uint8_t *to = bytes + (size_t)i * len;

		if (i == want || ++other == without)
			continue;
		/* Mixing strips of different generations would give wrong data, which only verification can detect. */
		if (!h->checked && h->v->devices[h->m->stripes[stripe].device].stale)
			continue;
		if (!read_stripe(h, stripe, place.offset, to, len, NULL))
			strips[i] = to;
	}
	ret = parity_rebuild(data, len, strips, n - data == 2, want, buf, err);
	free(strips);
	free(bytes);
	return ret;
}

static int read_mirror(const struct how *h, uint64_t offset, unsigned mirror, uint8_t *buf, size_t len,
		       struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const unsigned copies = raid_copies(&shape);

	while (len) {
		const struct raid_place place = raid_map(&shape, offset, mirror < copies ? mirror : 0);
		const size_t n = place.length < len ? (size_t)place.length : len;
		int ret;

		ret = mirror < copies ? read_stripe(h, place.stripe, place.offset, buf, n, err) :
					rebuild(h, offset, mirror - copies, buf, n, err);
		if (ret)
			return ret;
		offset += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* Counts a copy that could be read but failed verification. */
static void blame_copy(const struct how *h, uint64_t offset, unsigned mirror, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(h->m);
	const struct raid_place place = raid_map(&shape, offset, mirror);
	const struct volume_stripe *s = &h->m->stripes[place.stripe];

	atomic_fetch_add(&h->v->devices[s->device].damaged, 1);
	/* What a stale device has instead, and how that differs, is chance. */
	if (h->v->devices[s->device].stale)
		err->cause = BTRKIT_CAUSE_DEVICE_STALE;
	err_at_device(err, h->v->devices[s->device].is.devid, s->physical + place.offset);
}

/*
 * Counts a strip that is bad, because the data was wrong when rebuilt with it and right without it. It was readable, or
 * both results would be the same.
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
	struct how h = { .v = v, .checked = true };
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
	for (unsigned mirror = 0; mirror < num_mirrors(h.m); mirror++) {
		struct btrkit_error e = BTRKIT_ERROR_INIT;

		ret = read_mirror(&h, offset, mirror, buf, len, &e);
		if (!ret) {
			ret = verify(ctx, buf, &e);
			if (ret && mirror < copies)
				blame_copy(&h, offset, mirror, &e);
		}
		if (!ret) {
			if (mirror > copies)
				blame_left_out(&h, offset, mirror - copies, &t);
			if (mirror)
				trial_served(&t, mirror);
			return 0;
		}
		trial_failed(&t, mirror, ret, &e);
	}
	return trial_lost(&t, err);
}

/* Like volume_read(), for a range in one strip without verification. */
static int read_strip(struct how *h, uint64_t offset, uint8_t *to, size_t len, struct btrkit_error *err)
{
	struct trial t;

	trial_begin(&t, h->v, h->m, h->m->logical + offset, len, h->fresh);
	for (unsigned mirror = 0; mirror < num_mirrors(h->m); mirror++) {
		struct btrkit_error e = BTRKIT_ERROR_INIT;
		int ret = read_mirror(h, offset, mirror, to, len, &e);

		if (!ret) {
			if (mirror)
				trial_served(&t, mirror);
			return 0;
		}
		trial_failed(&t, mirror, ret, &e);
	}
	/* The caller will try again with stale devices. */
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
