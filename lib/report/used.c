// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists used ranges of devices. For each stripe on a device, in the order of addresses: the ranges that the extent tree
 * has for its chunk, plus superblocks in between.
 */
#include <btrkit/device.h>

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/feature.h"
#include "lib/space/extent_ranges.h"
#include "lib/tree/writable.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

/* A stripe of a chunk on the device. */
struct place {
	uint64_t physical;
	const struct volume_chunk *chunk;
	struct block_group *group;
	unsigned stripe;
};

struct device {
	uint64_t devid, total_bytes;
};

struct walk {
	struct btrkit_fs *fs;
	btrkit_used_range_fn fn;
	void *ctx;
	struct block_groups groups;
	struct tree_root extents;
	struct device *devices;
	size_t num_devices;
	struct place *places; /* of the current device */
	size_t num_places;
	struct btrkit_used_range last; /* may still be extended; length 0: none */
	unsigned next_super;
	const struct device *device;
};

static int flush(struct walk *w)
{
	const int ret = w->last.length ? w->fn(w->ctx, &w->last) : 0;

	w->last.length = 0;
	return ret;
}

/* Adds a range. It must not begin before the last one. */
static int put(struct walk *w, uint64_t start, uint64_t end)
{
	struct btrkit_used_range *last = &w->last;
	int ret;

	if (last->length && start <= last->physical + last->length) {
		if (end > last->physical + last->length)
			last->length = end - last->physical;
		return 0;
	}
	ret = flush(w);
	*last = (struct btrkit_used_range){ w->device->devid, start, end - start };
	return ret;
}

/* Adds the superblocks that begin before an address. */
static int put_supers(struct walk *w, uint64_t before)
{
	int ret = 0;

	while (!ret && w->next_super < SUPER_MIRRORS) {
		const uint64_t at = super_offset(w->next_super), size = sizeof(struct disk_super);

		if (at >= before || w->device->total_bytes < at + size)
			break;
		ret = put(w, at, at + size);
		w->next_super++;
	}
	return ret;
}

/* Offsets are relative to the start of the stripe. */
static int put_used(struct walk *w, const struct place *p, uint64_t start, uint64_t end)
{
	int ret = put_supers(w, p->physical + start);

	if (!ret)
		ret = put(w, p->physical + start, p->physical + end);
	return ret ? ret : put_supers(w, p->physical + end);
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Number of bytes on the stripe that precede an offset in the chunk; @first: offset in the row of the stripe's first
 * strip
 */
static uint64_t bytes_before(uint64_t offset, uint64_t row, uint64_t first)
{
	const uint64_t rest = offset % row;

	return offset / row * CHUNK_STRIPE_LEN + (rest > first ? min(rest - first, CHUNK_STRIPE_LEN) : 0);
}

/*
 * Adds the part of the range from @start to @end of the chunk that is on the stripe, or its parity. It is contiguous
 * there.
 */
static int put_strips(struct walk *w, const struct place *p, uint64_t start, uint64_t end)
{
	const struct raid_shape shape = { p->chunk->type, p->chunk->num_stripes };
	const uint64_t row = CHUNK_STRIPE_LEN * (uint64_t)raid_data_stripes(&shape);
	uint64_t first, from, to;

	/* If two extents share a row, adding it again has no effect, because ranges are added in order. */
	if (raid_profile_find(shape.type)->parity)
		return put_used(w, p, start / row * CHUNK_STRIPE_LEN,
				min(((end - 1) / row + 1) * CHUNK_STRIPE_LEN, p->chunk->stripe_length));
	raid_unmap(&shape, p->stripe, 0, &first);
	from = bytes_before(start, row, first);
	to = bytes_before(end, row, first);
	return from < to ? put_used(w, p, from, to) : 0;
}

static int put_extents(struct walk *w, const struct place *p, uint64_t start, uint64_t end)
{
	const uint64_t base = p->chunk->logical;

	if (start == end)
		return 0;
	if (raid_striped(p->chunk->type))
		return put_strips(w, p, start - base, end - base);
	return put_used(w, p, start - base, end - base);
}

static int walk_place(struct walk *w, const struct place *p, struct btrkit_error *err)
{
	const struct block_groups one = { p->group, 1, w->groups.tree };
	uint64_t at = p->group->start;
	struct extent_ranges r;
	struct range free;
	int ret;

	ret = extent_ranges_begin_at(&r, w->fs, &w->extents, &one, err);
	if (!ret)
		ret = extent_ranges_next_group(&r, err);
	while (!ret && !(ret = extent_ranges_next(&r, &free, err))) {
		ret = put_extents(w, p, at, free.start);
		at = free.start + free.length;
	}
	extent_ranges_release(&r);
	return ret == 1 ? put_extents(w, p, at, p->group->start + p->group->length) : ret;
}

static int compare_places(const void *va, const void *vb)
{
	const struct place *a = va, *b = vb;

	return a->physical < b->physical ? -1 : a->physical > b->physical;
}

/* Finds the stripes on the device, sorted by address. */
static int find_places(struct walk *w, struct btrkit_error *err)
{
	const struct volume *v = w->fs->volume;

	w->num_places = 0;
	for (size_t i = 0; i < volume_num_chunks(v); i++) {
		const struct volume_chunk *c = volume_chunk(v, i);

		for (unsigned s = 0; s < c->num_stripes; s++)
			if (c->stripes[s].devid == w->device->devid)
				w->places[w->num_places++] =
					(struct place){ c->stripes[s].physical, c, &w->groups.at[i], s };
	}
	if (w->num_places)
		qsort(w->places, w->num_places, sizeof(*w->places), compare_places);
	for (size_t i = 1; i < w->num_places; i++) {
		const struct place *a = &w->places[i - 1], *b = &w->places[i];

		if (b->physical - a->physical < a->chunk->stripe_length)
			return err_corrupt(err, "stripe.offset",
					   "chunks %" PRIu64 " and %" PRIu64 " overlap on the device",
					   a->chunk->logical, b->chunk->logical);
	}
	return 0;
}

static int walk_device(struct walk *w, const struct device *d, struct btrkit_error *err)
{
	int ret;

	w->device = d;
	w->next_super = 0;
	ret = find_places(w, err);
	for (size_t i = 0; !ret && i < w->num_places; i++)
		ret = walk_place(w, &w->places[i], err);
	if (!ret)
		ret = put_supers(w, UINT64_MAX);
	return ret ? ret : flush(w);
}

static int collect_device(void *ctx, const struct btrkit_device *d)
{
	struct walk *w = ctx;
	struct device *grown = realloc(w->devices, (w->num_devices + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	w->devices = grown;
	w->devices[w->num_devices++] = (struct device){ d->devid, d->total_bytes };
	return 0;
}

static int check_fs(struct btrkit_fs *fs, struct btrkit_error *err)
{
	bool replacing;
	int ret;

	ret = fs_check_committed(fs, err);
	if (!ret)
		ret = features_check_allocation(&fs->super, err);
	if (!ret)
		ret = writable_replacing(fs, &replacing, err);
	if (!ret && replacing)
		ret = err_set(err, BTRKIT_UNSUPPORTED,
			      "listing used ranges is not supported: unfinished device replace");
	return ret;
}

static int prepare(struct walk *w, struct btrkit_error *err)
{
	const struct volume *v = w->fs->volume;
	size_t n = 0;
	int ret = block_groups_load(w->fs, &w->groups, err);

	if (!ret)
		ret = fs_find_root(w->fs, OID_EXTENT_TREE, &w->extents, NULL, err);
	if (!ret)
		ret = btrkit_devices(w->fs, collect_device, w, err);
	if (ret)
		return ret == -ENOMEM ? err_nomem(err) : ret;
	for (size_t i = 0; i < volume_num_chunks(v); i++)
		n += volume_chunk(v, i)->num_stripes;
	w->places = calloc(n ? n : 1, sizeof(*w->places));
	return w->places ? 0 : err_nomem(err);
}

int btrkit_used_ranges(struct btrkit_fs *fs, uint64_t devid, btrkit_used_range_fn fn, void *ctx,
		       struct btrkit_error *err)
{
	struct walk w = { .fs = fs, .fn = fn, .ctx = ctx };
	bool found = !devid;
	int ret = check_fs(fs, err);

	if (!ret)
		ret = prepare(&w, err);
	for (size_t i = 0; !ret && i < w.num_devices; i++) {
		if (devid && w.devices[i].devid != devid)
			continue;
		found = true;
		ret = walk_device(&w, &w.devices[i], err);
	}
	if (!ret && !found)
		ret = err_set(err, BTRKIT_NOT_FOUND, "no device with devid %" PRIu64, devid);
	block_groups_release(&w.groups);
	free(w.devices);
	free(w.places);
	return ret;
}
