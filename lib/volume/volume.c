// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/raid.h"

/* SINGLE has one, DUP two. */
#define STRIPES_MAX VOLUME_COPIES_MAX

struct mapping {
	uint64_t logical, length, type;
	unsigned num_stripes;
	struct {
		unsigned device; /* index in the volume */
		uint64_t physical;
	} stripes[STRIPES_MAX];
};

struct volume {
	struct volume_device *devices;
	size_t num_devices;
	struct mapping *chunks; /* ordered by logical address, no overlap */
	size_t num_chunks, chunks_size;
};

static int judge_devices(const struct super *supers, size_t n, struct btrkit_error *err)
{
	if (supers[0].num_devices != n)
		return err_set(err, BTRKIT_UNSUPPORTED, "filesystem has %" PRIu64 " devices, %zu given: all are needed",
			       supers[0].num_devices, n);
	for (size_t i = 1; i < n; i++) {
		if (memcmp(supers[i].fsid, supers[0].fsid, sizeof(supers[0].fsid)))
			return err_set(err, BTRKIT_INVALID, "devices belong to different filesystems");
		for (size_t j = 0; j < i; j++)
			if (supers[i].devid == supers[j].devid)
				return err_set(err, BTRKIT_INVALID, "device %" PRIu64 " is given twice",
					       supers[i].devid);
	}
	return 0;
}

int volume_create(struct btrkit_io *const *devices, const struct super *supers, size_t n, struct volume **ret,
		  struct btrkit_error *err)
{
	struct volume *v;
	int r;

	r = judge_devices(supers, n, err);
	if (r)
		return r;
	v = calloc(1, sizeof(*v));
	if (!v)
		return err_nomem(err);
	v->devices = calloc(n, sizeof(*v->devices));
	if (!v->devices) {
		free(v);
		return err_nomem(err);
	}
	for (size_t i = 0; i < n; i++) {
		v->devices[i] = (struct volume_device){ .io = devices[i], .devid = supers[i].devid };
		memcpy(v->devices[i].uuid, supers[i].dev_uuid, sizeof(v->devices[i].uuid));
	}
	v->num_devices = n;
	*ret = v;
	return 0;
}

struct volume *volume_release(struct volume *v)
{
	if (!v)
		return NULL;
	free(v->devices);
	free(v->chunks);
	free(v);
	return NULL;
}

struct volume *volume_destroy(struct volume *v)
{
	for (size_t i = 0; v && i < v->num_devices; i++)
		btrkit_io_close(v->devices[i].io);
	return volume_release(v);
}

/* The index of the first chunk that ends behind @logical. */
static size_t chunk_behind(const struct volume *v, uint64_t logical)
{
	size_t low = 0, high = v->num_chunks;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v->chunks[mid].logical + v->chunks[mid].length - 1 < logical)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int mapping_of(const struct volume *v, const struct chunk *c, struct mapping *m, struct btrkit_error *err)
{
	const struct raid_profile *profile = raid_profile_find(c->type);
	unsigned copies = profile->copies;

	if (profile->flag && profile->flag != BG_DUP)
		return err_set(err, BTRKIT_UNSUPPORTED, "block group profile %s is not supported", profile->name);
	if (c->num_stripes != copies)
		return err_corrupt(err, "num_stripes", "chunk %" PRIu64 " has %u stripes, %u expected", c->logical,
				   c->num_stripes, copies);
	if (!c->length || c->logical + c->length < c->logical)
		return err_corrupt(err, "length", "chunk %" PRIu64 " has length %" PRIu64, c->logical, c->length);
	*m = (struct mapping){ .logical = c->logical, .length = c->length, .type = c->type, .num_stripes = copies };
	for (unsigned i = 0; i < copies; i++) {
		uint64_t devid = le64_get(c->stripes[i].devid), physical = le64_get(c->stripes[i].offset);
		unsigned d = 0;

		while (d < v->num_devices && v->devices[d].devid != devid)
			d++;
		if (d == v->num_devices)
			return err_corrupt(err, "stripe.devid",
					   "chunk %" PRIu64 " lies on device %" PRIu64 ", which there is not",
					   c->logical, devid);
		if (physical + c->length < physical)
			return err_corrupt(err, "stripe.offset", "chunk %" PRIu64 " ends behind any device",
					   c->logical);
		m->stripes[i].device = d;
		m->stripes[i].physical = physical;
	}
	return 0;
}

static bool mapping_equal(const struct mapping *a, const struct mapping *b)
{
	if (a->logical != b->logical || a->length != b->length || a->type != b->type ||
	    a->num_stripes != b->num_stripes)
		return false;
	for (unsigned i = 0; i < a->num_stripes; i++)
		if (a->stripes[i].device != b->stripes[i].device || a->stripes[i].physical != b->stripes[i].physical)
			return false;
	return true;
}

int volume_add_chunk(struct volume *v, const struct chunk *chunk, struct btrkit_error *err)
{
	struct mapping m;
	size_t at;
	int r;

	r = mapping_of(v, chunk, &m, err);
	if (r)
		return r;
	at = chunk_behind(v, m.logical);
	if (at < v->num_chunks && v->chunks[at].logical < m.logical + m.length) {
		if (mapping_equal(&v->chunks[at], &m))
			return 0;
		return err_corrupt(err, "logical", "chunks %" PRIu64 " and %" PRIu64 " overlap", v->chunks[at].logical,
				   m.logical);
	}
	if (v->num_chunks == v->chunks_size) {
		size_t size = v->chunks_size ? 2 * v->chunks_size : 64;
		struct mapping *more = reallocarray(v->chunks, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		v->chunks = more;
		v->chunks_size = size;
	}
	memmove(v->chunks + at + 1, v->chunks + at, (v->num_chunks - at) * sizeof(*v->chunks));
	v->chunks[at] = m;
	v->num_chunks++;
	return 0;
}

void volume_remove_chunk(struct volume *v, uint64_t logical)
{
	const size_t at = volume_find_chunk(v, logical);

	if (at == v->num_chunks)
		return;
	v->num_chunks--;
	memmove(v->chunks + at, v->chunks + at + 1, (v->num_chunks - at) * sizeof(*v->chunks));
}

size_t volume_num_devices(const struct volume *v)
{
	return v->num_devices;
}

struct volume_device volume_device(const struct volume *v, size_t i)
{
	return v->devices[i];
}

size_t volume_num_chunks(const struct volume *v)
{
	return v->num_chunks;
}

size_t volume_find_chunk(const struct volume *v, uint64_t logical)
{
	const size_t at = chunk_behind(v, logical);

	return at < v->num_chunks && v->chunks[at].logical == logical ? at : v->num_chunks;
}

struct volume_chunk volume_chunk(const struct volume *v, size_t i)
{
	const struct mapping *m = &v->chunks[i];
	struct volume_chunk ret = { m->logical, m->length, m->type, m->num_stripes, { 0 }, { 0 } };

	for (unsigned copy = 0; copy < m->num_stripes; copy++) {
		ret.devid[copy] = v->devices[m->stripes[copy].device].devid;
		ret.physical[copy] = m->stripes[copy].physical;
	}
	return ret;
}

int volume_map(const struct volume *v, uint64_t logical, uint64_t len, unsigned mirror, struct copy *ret,
	       struct btrkit_error *err)
{
	size_t at = chunk_behind(v, logical);
	const struct mapping *m = v->chunks + at;
	const struct volume_device *d;

	if (at == v->num_chunks || logical < m->logical || len > m->length - (logical - m->logical)) {
		err_corrupt(err, NULL, "no chunk has the address");
		err_at_logical(err, logical);
		return -EUCLEAN;
	}
	if (mirror >= m->num_stripes)
		return 1;
	d = &v->devices[m->stripes[mirror].device];
	*ret = (struct copy){ d->io, d->devid, m->stripes[mirror].physical + (logical - m->logical) };
	return 0;
}

int volume_read(const struct volume *v, uint64_t logical, void *buf, size_t len, volume_verify_fn verify, void *ctx,
		struct btrkit_error *err)
{
	int first = 0;

	for (unsigned mirror = 0;; mirror++) {
		/* The first copy's failure is the one told, so a later one must not overwrite it. */
		struct btrkit_error *e = first ? NULL : err;
		struct copy copy;
		int r;

		r = volume_map(v, logical, len, mirror, &copy, e);
		if (r)
			return r < 0 ? r : first;
		r = btrkit_io_read(copy.io, copy.physical, buf, len, e);
		if (!r)
			r = verify(ctx, buf, e);
		if (!r)
			return 0;
		err_at_logical(e, logical);
		err_at_device(e, copy.devid, copy.physical);
		if (!first)
			first = r;
	}
}

unsigned volume_data_factor(const struct volume *v)
{
	for (size_t i = 0; i < v->num_chunks; i++)
		if ((v->chunks[i].type & (BG_DATA | BG_DUP)) == (BG_DATA | BG_DUP))
			return 2;
	return 1;
}

void volume_prefetch(const struct volume *v, uint64_t logical, uint64_t len)
{
	struct copy copy;

	if (!volume_map(v, logical, len, 0, &copy, NULL) && copy.io->ops->prefetch)
		copy.io->ops->prefetch(copy.io, copy.physical, len);
}
