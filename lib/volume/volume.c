// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/volume/parity.h"
#include "lib/volume/volume_impl.h"

/*
 * Number of devices to allocate: room for missing ones, at most as many as a superblock counts, plus given devices that
 * may not be among those.
 */
static size_t room_for(const struct super *supers, size_t n)
{
	uint64_t most = 1;

	for (size_t i = 0; i < n; i++)
		if (supers[i].num_devices > most)
			most = supers[i].num_devices;
	return most < VOLUME_DEVICES_MAX - n ? (size_t)most + n - 1 : VOLUME_DEVICES_MAX;
}

int volume_create(struct btrkit_io *const *devices, const struct super *supers, size_t n, struct volume **ret,
		  struct btrkit_error *err)
{
	struct volume *v = calloc(1, sizeof(*v));

	if (!v)
		return err_nomem(err);
	v->devices_max = room_for(supers, n);
	v->devices = calloc(v->devices_max, sizeof(*v->devices));
	if (!v->devices) {
		free(v);
		return err_nomem(err);
	}
	for (size_t i = 0; i < n; i++) {
		struct volume_device *d = &v->devices[i].is;

		*d = (struct volume_device){ .io = devices[i], .devid = supers[i].devid };
		memcpy(d->uuid, supers[i].dev_uuid, sizeof(d->uuid));
	}
	v->num_devices = n;
	*ret = v;
	return 0;
}

void volume_watch(struct volume *v, btrkit_bad_read_fn bad_read, void *ctx)
{
	v->bad_read = bad_read;
	v->bad_read_ctx = ctx;
}

void volume_set_stale(struct volume *v, size_t device)
{
	v->devices[device].stale = true;
	v->some_stale = true;
}

void volume_leave_out(struct volume *v, size_t device)
{
	struct device *d = &v->devices[device];

	if (!d->is.io)
		return;
	d->left_out = d->is.io;
	d->is.io = NULL;
}

bool volume_is_stale(const struct volume *v, uint64_t devid)
{
	for (size_t i = 0; v->some_stale && i < v->num_devices; i++)
		if (v->devices[i].stale && v->devices[i].is.devid == devid)
			return true;
	return false;
}

struct volume *volume_release(struct volume *v)
{
	if (!v)
		return NULL;
	for (size_t i = 0; i < v->num_chunks; i++)
		free(v->chunks[i]);
	free(v->devices);
	free(v->chunks);
	free(v);
	return NULL;
}

static void close_device(struct device *d)
{
	btrkit_io_close(d->is.io);
	btrkit_io_close(d->left_out);
}

struct volume *volume_destroy(struct volume *v)
{
	for (size_t i = 0; v && i < v->num_devices; i++)
		close_device(&v->devices[i]);
	return volume_release(v);
}

static size_t find_device(const struct volume *v, uint64_t devid)
{
	size_t d = 0;

	while (d < v->num_devices && v->devices[d].is.devid != devid)
		d++;
	return d;
}

void volume_add_device(struct volume *v, uint64_t devid, const uint8_t uuid[16])
{
	struct volume_device *missing;

	if (find_device(v, devid) < v->num_devices || v->num_devices == v->devices_max)
		return;
	missing = &v->devices[v->num_devices++].is;
	missing->devid = devid;
	memcpy(missing->uuid, uuid, sizeof(missing->uuid));
}

/* Finds the device of a stripe; adds it as missing if it is unknown. @return its index; -EUCLEAN: too many devices */
static int device_of(struct volume *v, const struct chunk *c, const struct disk_stripe *stripe,
		     struct btrkit_error *err)
{
	const uint64_t devid = le64_get(stripe->devid);
	const size_t d = find_device(v, devid);

	if (d == v->devices_max)
		return err_corrupt(err, "stripe.devid",
				   "chunk %" PRIu64 " is on device %" PRIu64 ", which does not exist", c->logical,
				   devid);
	volume_add_device(v, devid, stripe->dev_uuid);
	return (int)d;
}

static int fill_stripes(struct volume *v, const struct chunk *c, struct volume_chunk *to, struct btrkit_error *err)
{
	for (unsigned i = 0; i < c->num_stripes; i++) {
		const uint64_t physical = le64_get(c->stripes[i].offset);
		const int d = device_of(v, c, &c->stripes[i], err);

		if (d < 0)
			return d;
		if (physical + to->stripe_length < physical)
			return err_corrupt(err, "stripe.offset", "chunk %" PRIu64 " exceeds the largest device offset",
					   c->logical);
		to->stripes[i] = (struct volume_stripe){ (unsigned)d, v->devices[d].is.devid, physical };
	}
	return 0;
}

static int chunk_of(struct volume *v, const struct chunk *c, struct volume_chunk **ret, struct btrkit_error *err)
{
	const struct raid_shape shape = { c->type, c->num_stripes };
	struct volume_chunk *made;
	int r;

	if (!raid_shape_valid(&shape))
		return err_corrupt(err, "num_stripes", "chunk %" PRIu64 " of profile %s has %u stripes", c->logical,
				   raid_profile_find(c->type)->name, c->num_stripes);
	if (!c->length || c->logical + c->length < c->logical)
		return err_corrupt(err, "length", "chunk %" PRIu64 " has invalid length %" PRIu64, c->logical,
				   c->length);
	made = calloc(1, sizeof(*made) + c->num_stripes * sizeof(made->stripes[0]));
	if (!made)
		return err_nomem(err);
	*made = (struct volume_chunk){ c->logical, c->length, c->type, c->length / raid_data_stripes(&shape),
				       c->num_stripes };
	r = fill_stripes(v, c, made, err);
	if (r)
		free(made);
	else
		*ret = made;
	return r;
}

static bool chunk_equal(const struct volume_chunk *a, const struct volume_chunk *b)
{
	if (a->logical != b->logical || a->length != b->length || a->type != b->type ||
	    a->num_stripes != b->num_stripes)
		return false;
	for (unsigned i = 0; i < a->num_stripes; i++)
		if (a->stripes[i].device != b->stripes[i].device || a->stripes[i].physical != b->stripes[i].physical)
			return false;
	return true;
}

/* Ensures that there is room for one more chunk. */
static int make_room(struct volume *v, struct btrkit_error *err)
{
	const size_t size = v->chunks_size ? 2 * v->chunks_size : 64;
	struct volume_chunk **more;

	if (v->num_chunks < v->chunks_size)
		return 0;
	more = reallocarray(v->chunks, size, sizeof(*more));
	if (!more)
		return err_nomem(err);
	v->chunks = more;
	v->chunks_size = size;
	return 0;
}

static void insert(struct volume *v, size_t at, struct volume_chunk *chunk)
{
	memmove(v->chunks + at + 1, v->chunks + at, (v->num_chunks - at) * sizeof(*v->chunks));
	v->chunks[at] = chunk;
	v->num_chunks++;
}

int volume_add_chunk(struct volume *v, const struct chunk *chunk, struct btrkit_error *err)
{
	struct volume_chunk *made = NULL;
	size_t at;
	int ret;

	ret = chunk_of(v, chunk, &made, err);
	if (ret)
		return ret;
	at = volume_chunk_from(v, made->logical);
	if (at < v->num_chunks && v->chunks[at]->logical < made->logical + made->length) {
		if (!chunk_equal(v->chunks[at], made))
			ret = err_corrupt(err, "logical", "chunks %" PRIu64 " and %" PRIu64 " overlap",
					  v->chunks[at]->logical, made->logical);
		free(made);
		return ret;
	}
	ret = make_room(v, err);
	if (ret)
		free(made);
	else
		insert(v, at, made);
	return ret;
}

struct volume_chunk *volume_take_chunk(struct volume *v, uint64_t logical)
{
	const size_t at = volume_find_chunk(v, logical);
	struct volume_chunk *chunk;

	if (at == v->num_chunks)
		return NULL;
	chunk = v->chunks[at];
	v->num_chunks--;
	memmove(v->chunks + at, v->chunks + at + 1, (v->num_chunks - at) * sizeof(*v->chunks));
	return chunk;
}

void volume_put_chunk(struct volume *v, struct volume_chunk *chunk)
{
	if (v->num_chunks < v->chunks_size)
		insert(v, volume_chunk_from(v, chunk->logical), chunk);
	else
		free(chunk);
}

size_t volume_num_devices(const struct volume *v)
{
	return v->num_devices;
}

struct volume_device volume_device(const struct volume *v, size_t i)
{
	return v->devices[i].is;
}

size_t volume_num_chunks(const struct volume *v)
{
	return v->num_chunks;
}

size_t volume_chunk_from(const struct volume *v, uint64_t logical)
{
	size_t low = 0, high = v->num_chunks;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v->chunks[mid]->logical + v->chunks[mid]->length - 1 < logical)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t volume_find_chunk(const struct volume *v, uint64_t logical)
{
	const size_t at = volume_chunk_from(v, logical);

	return at < v->num_chunks && v->chunks[at]->logical == logical ? at : v->num_chunks;
}

const struct volume_chunk *volume_chunk(const struct volume *v, size_t i)
{
	return v->chunks[i];
}

/* @fresh: without stale devices, too */
static bool is_readable(const struct volume *v, const struct volume_chunk *c, bool fresh)
{
	const struct raid_profile *p = raid_profile_find(c->type);
	const unsigned group = p->flag & BG_RAID10 ? p->copies : c->num_stripes;
	/* Number of stripes that may be missing in each group of stripes with the same data. */
	const unsigned spare = p->parity ? (parity_available() ? p->parity : 0) : p->copies - 1u;

	for (unsigned first = 0; first < c->num_stripes; first += group) {
		unsigned missing = 0;

		for (unsigned s = first; s < first + group; s++) {
			const struct device *d = &v->devices[c->stripes[s].device];

			missing += !d->is.io || (fresh && d->stale);
		}
		if (missing > spare)
			return false;
	}
	return true;
}

bool volume_chunk_reachable(const struct volume *v, size_t i)
{
	return is_readable(v, v->chunks[i], false);
}

static bool has_stripe_on(const struct volume_chunk *c, uint64_t devid)
{
	for (unsigned i = 0; i < c->num_stripes; i++)
		if (c->stripes[i].devid == devid)
			return true;
	return false;
}

void volume_find_unmirrored(struct volume *v, size_t device)
{
	struct device *d = &v->devices[device];

	d->unmirrored = 0;
	for (size_t i = 0; i < v->num_chunks; i++) {
		const uint64_t type = v->chunks[i]->type;

		if (has_stripe_on(v->chunks[i], d->is.devid) && !is_readable(v, v->chunks[i], true))
			d->unmirrored |= type | (type & BG_PROFILE_MASK ? 0 : BG_SINGLE);
	}
}

uint64_t volume_unmirrored(const struct volume *v, uint64_t devid)
{
	for (size_t i = 0; i < v->num_devices; i++)
		if (v->devices[i].is.devid == devid)
			return v->devices[i].unmirrored;
	return 0;
}

bool volume_chunk_writable(const struct volume *v, size_t i)
{
	const struct volume_chunk *c = v->chunks[i];
	const struct raid_profile *p = raid_profile_find(c->type);
	const unsigned tolerated = p->parity ? p->parity : p->flag == BG_DUP ? 0 : p->copies - 1u;
	unsigned missing = 0;

	for (unsigned s = 0; s < c->num_stripes; s++)
		missing += !v->devices[c->stripes[s].device].is.io;
	return missing <= tolerated;
}

int volume_find(const struct volume *v, uint64_t logical, uint64_t len, const struct volume_chunk **ret,
		struct btrkit_error *err)
{
	const size_t at = volume_chunk_from(v, logical);
	const struct volume_chunk *c = at < v->num_chunks ? v->chunks[at] : NULL;

	if (!c || logical < c->logical || len > c->length - (logical - c->logical)) {
		err_corrupt(err, NULL, "no chunk contains the address");
		err_at_logical(err, logical);
		return err_because(err, BTRKIT_CAUSE_UNMAPPED, -EUCLEAN);
	}
	*ret = c;
	return 0;
}

int volume_map(const struct volume *v, uint64_t logical, uint64_t len, unsigned mirror, struct copy *ret,
	       struct btrkit_error *err)
{
	const struct volume_stripe *s;
	const struct volume_chunk *c;
	struct raid_shape shape;
	struct raid_place place;
	int r;

	r = volume_find(v, logical, len, &c, err);
	if (r)
		return r;
	shape = shape_of(c);
	if (mirror >= raid_copies(&shape))
		return 1;
	place = raid_map(&shape, logical - c->logical, mirror);
	s = &c->stripes[place.stripe];
	*ret = (struct copy){ v->devices[s->device].is.io, s->devid, s->physical + place.offset,
			      place.length < len ? place.length : len };
	return 0;
}

unsigned volume_data_factor(const struct volume *v)
{
	unsigned factor = 1;

	for (size_t i = 0; i < v->num_chunks; i++) {
		const struct raid_shape shape = shape_of(v->chunks[i]);

		if (shape.type & BG_DATA && raid_copies(&shape) > factor)
			factor = raid_copies(&shape);
	}
	return factor;
}

void volume_prefetch(const struct volume *v, uint64_t logical, uint64_t len)
{
	struct copy copy;

	while (len && !volume_map(v, logical, len, 0, &copy, NULL)) {
		if (copy.io && copy.io->ops->prefetch)
			copy.io->ops->prefetch(copy.io, copy.physical, copy.length);
		logical += copy.length;
		len -= copy.length;
	}
}
