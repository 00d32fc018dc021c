// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading. A range can be had in several ways, its views: each copy is one; with parity the strips that are wanted can
 * be rebuilt from all others, and with two parities from all others but one, whichever that is. The caller's judgement
 * says which view is right.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume_impl.h"

/* How many views there are of ranges in a chunk. */
static unsigned num_views(const struct volume_chunk *m)
{
	const struct raid_profile *p = raid_profile_find(m->type);

	if (!p->parity || !parity_available())
		return p->copies;
	return p->parity == 1 ? 2 : 2 + m->num_stripes - 1;
}

static int read_stripe(const struct volume *v, const struct volume_chunk *m, unsigned stripe, uint64_t offset,
		       void *buf, size_t len, struct btrkit_error *err)
{
	const struct volume_stripe *s = &m->stripes[stripe];
	struct device *d = &v->devices[s->device];
	int ret;

	if (d->is.io)
		ret = btrkit_io_read(d->is.io, s->physical + offset, buf, len, err);
	else
		ret = err_set(err, BTRKIT_IO, "device is missing");
	if (ret) {
		if (d->is.io)
			atomic_fetch_add(&d->read_errors, 1);
		err_at_device(err, d->is.devid, s->physical + offset);
	}
	return ret;
}

/*
 * Rebuilds a piece of one strip from the others of its row. Number @without of them (from 1; 0: none) is left out, as
 * are those that cannot be read.
 */
static int rebuild(const struct volume *v, const struct volume_chunk *m, uint64_t offset, unsigned without,
		   uint8_t *buf, size_t len, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(m);
	const struct raid_place place = raid_map(&shape, offset, 0);
	const unsigned data = raid_data_stripes(&shape), n = m->num_stripes;
	const uint64_t row = place.offset / CHUNK_STRIPE_LEN;
	const unsigned want = (unsigned)(offset / CHUNK_STRIPE_LEN % data);
	uint8_t **strips = calloc(n, sizeof(*strips)), *bytes = malloc((size_t)n * len);
	unsigned other = 0;
	int ret;

	if (!strips || !bytes) {
		free(strips);
		free(bytes);
		return err_nomem(err);
	}
	for (unsigned i = 0; i < n; i++) {
		uint8_t *to = bytes + (size_t)i * len;

		if (i == want || ++other == without)
			continue;
		if (!read_stripe(v, m, raid_strip_stripe(&shape, row, i), place.offset, to, len, NULL))
			strips[i] = to;
	}
	ret = parity_rebuild(data, len, strips, n - data == 2, want, buf, err);
	free(strips);
	free(bytes);
	return ret;
}

static int read_view(const struct volume *v, const struct volume_chunk *m, uint64_t offset, unsigned view, uint8_t *buf,
		     size_t len, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(m);
	const bool direct = view < raid_copies(&shape);

	while (len) {
		const struct raid_place place = raid_map(&shape, offset, direct ? view : 0);
		const size_t n = place.length < len ? (size_t)place.length : len;
		int ret;

		ret = direct ? read_stripe(v, m, place.stripe, place.offset, buf, n, err) :
			       rebuild(v, m, offset, view - 1, buf, n, err);
		if (ret)
			return ret;
		offset += n;
		buf += n;
		len -= n;
	}
	return 0;
}

/* A copy was read and is not what it should be. */
static void blame_copy(const struct volume *v, const struct volume_chunk *m, uint64_t offset, unsigned view,
		       struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(m);
	const struct raid_place place = raid_map(&shape, offset, view);
	const struct volume_stripe *s = &m->stripes[place.stripe];

	atomic_fetch_add(&v->devices[s->device].damaged, 1);
	err_at_device(err, v->devices[s->device].is.devid, s->physical + place.offset);
}

int volume_read(const struct volume *v, uint64_t logical, void *buf, size_t len, volume_verify_fn verify, void *ctx,
		struct btrkit_error *err)
{
	const struct volume_chunk *m;
	unsigned copies;
	int first;

	first = volume_find(v, logical, len, &m, err);
	if (first)
		return first;
	copies = raid_profile_find(m->type)->copies;
	for (unsigned view = 0; view < num_views(m); view++) {
		/* The first copy's failure is the one told, so a later one must not overwrite it. */
		struct btrkit_error *e = first ? NULL : err;
		int r = read_view(v, m, logical - m->logical, view, buf, len, e);

		if (!r) {
			r = verify(ctx, buf, e);
			if (!r)
				return 0;
			if (view < copies)
				blame_copy(v, m, logical - m->logical, view, e);
		}
		err_at_logical(e, logical);
		if (!first)
			first = r;
	}
	return first;
}

int volume_read_any(const struct volume *v, uint64_t logical, void *buf, size_t len, struct btrkit_error *err)
{
	const struct volume_chunk *m;
	struct raid_shape shape;
	uint8_t *to = buf;
	int ret;

	ret = volume_find(v, logical, len, &m, err);
	if (ret)
		return ret;
	shape = shape_of(m);
	while (len) {
		const struct raid_place place = raid_map(&shape, logical - m->logical, 0);
		const size_t n = place.length < len ? (size_t)place.length : len;

		ret = read_view(v, m, logical - m->logical, 0, to, n, err);
		for (unsigned view = 1; ret && view < num_views(m); view++)
			if (!read_view(v, m, logical - m->logical, view, to, n, NULL))
				ret = 0;
		if (ret) {
			err_at_logical(err, logical);
			return ret;
		}
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
