// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares device extents with the stripes of chunks: each stripe must have one device extent. */
#include <stdlib.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/trees/items.h"
#include "lib/check/volume/dev_extents.h"
#include "lib/check/volume/devices.h"
#include "lib/check/volume/volume.h"
#include "lib/format/feature_bits.h"

static void take_item(void *ctx, const struct item *item)
{
	struct volume_check *v = ctx;
	struct dev_extent extent, *to;

	if (item->key.type != KEY_DEV_EXTENT)
		return;
	if (dev_extent_decode(&v->c->items, item, &extent, NULL)) {
		v->extents_lost = true;
		return;
	}
	to = check_list_add(v->c, &v->extents, sizeof(*to));
	if (to)
		*to = extent;
}

static void report_dev_extent(const struct volume_check *v, enum check_code code, const struct dev_extent *e,
			      const uint64_t values[2], const char *message)
{
	check_report_at(v->c, code,
			&(struct check_location){ OID_DEV_TREE, 0, &KEY(e->devid, KEY_DEV_EXTENT, e->physical), NULL,
						  e->devid, e->physical, values },
			"%s", message);
}

static int compare_stripes(const void *x, const void *y)
{
	const struct dev_extent *a = &((const struct known_stripe *)x)->is, *b = &((const struct known_stripe *)y)->is;

	if (a->devid != b->devid)
		return a->devid < b->devid ? -1 : 1;
	return a->physical < b->physical ? -1 : a->physical > b->physical;
}

static void check_pair(const struct volume_check *v, const struct dev_extent *stripe, const struct dev_extent *e)
{
	const uint64_t chunks[] = { e->chunk_offset, stripe->chunk_offset }, lengths[] = { e->length, stripe->length };

	if (chunks[0] != chunks[1])
		report_dev_extent(v, CHECK_DEVEXT_DIFFERS, e, chunks,
				  "device extent refers to a different chunk than the one with a stripe there");
	if (lengths[0] != lengths[1])
		report_dev_extent(v, CHECK_DEVEXT_DIFFERS, e, lengths,
				  "device extent has a different length than the stripe of its chunk");
}

/* Reports a stripe without a device extent, at the item of its chunk. */
static void report_lonely_stripe(const struct volume_check *v, const struct dev_extent *stripe)
{
	const struct btrkit_key key = KEY(OID_FIRST_CHUNK_TREE, KEY_CHUNK_ITEM, stripe->chunk_offset);

	if (!v->extents_lost)
		check_report_at(v->c, CHECK_CHUNK_EXTENT,
				&(struct check_location){ OID_CHUNK_TREE, 0, &key, "stripe.offset", stripe->devid,
							  stripe->physical },
				"stripe of a chunk has no device extent");
}

/* If the device does not exist, that is reported instead. */
static void report_lonely_extent(const struct volume_check *v, const struct dev_extent *e)
{
	if (!v->c->chunks_lost && (v->devices_lost || volume_find_device(v, e->devid)))
		report_dev_extent(v, CHECK_DEVEXT_CHUNK, e, NULL, "device extent does not belong to a chunk");
}

static void compare(const struct volume_check *v)
{
	const struct known_stripe *stripes = v->stripes.at;
	const struct dev_extent *extents = v->extents.at;

	for (size_t i = 0, j = 0; i < v->stripes.n || j < v->extents.n;) {
		const int cmp = i == v->stripes.n ?
					1 :
				j == v->extents.n ?
					-1 :
					compare_stripes(&stripes[i], &(struct known_stripe){ .is = extents[j] });

		if (cmp < 0)
			report_lonely_stripe(v, &stripes[i].is);
		else if (cmp > 0)
			report_lonely_extent(v, &extents[j]);
		else
			check_pair(v, &stripes[i].is, &extents[j]);
		i += cmp <= 0;
		j += cmp >= 0;
	}
}

static void check_overlaps(const struct volume_check *v)
{
	const struct dev_extent *extents = v->extents.at;

	for (size_t i = 1; i < v->extents.n; i++)
		if (extents[i - 1].devid == extents[i].devid &&
		    extents[i].physical - extents[i - 1].physical < extents[i - 1].length)
			report_dev_extent(v, CHECK_DEVEXT_OVERLAP, &extents[i], NULL,
					  "device extent overlaps the previous one");
}

/* Returns the size of the zones of a device. Without any, Linux emulates zones as long as the first device extent. */
static uint64_t zone_size(const struct volume_check *v, uint64_t devid)
{
	const struct volume *volume = v->c->fs->volume;
	struct btrkit_zone zone;

	for (size_t i = 0; i < volume_num_devices(volume); i++) {
		const struct volume_device d = volume_device(volume, i);

		if (d.devid == devid && d.io && d.io->ops->zone && !d.io->ops->zone(d.io, 0, &zone))
			return zone.length;
	}
	return ((const struct dev_extent *)v->extents.at)->length;
}

/* On a zoned filesystem, Linux refuses device extents that are not whole zones. The first one is reported. */
static void check_zones(const struct volume_check *v)
{
	const struct dev_extent *extents = v->extents.at;
	uint64_t size = 0;

	for (size_t i = 0; i < v->extents.n; i++) {
		const struct dev_extent *e = &extents[i];

		if (!i || e->devid != e[-1].devid)
			size = zone_size(v, e->devid);
		if (!size || (!(e->physical % size) && !(e->length % size)))
			continue;
		report_dev_extent(v, CHECK_SUPER_FEATURE, e, NULL,
				  "filesystem is zoned, but a device extent does not consist of whole zones");
		return;
	}
}

int volume_dev_extents(struct volume_check *v)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	int ret = fs_find_root(v->c->fs, OID_DEV_TREE, &root, NULL, &err);

	if (ret == -ENOMEM)
		return check_fail(v->c, ret, &err);
	/* roots.c reports a missing tree. */
	if (ret)
		v->extents_lost = true;
	else if ((ret = check_each_item(v->c, &root, &v->extents_lost, take_item, v)))
		return ret;
	if (v->stripes.n)
		qsort(v->stripes.at, v->stripes.n, sizeof(struct known_stripe), compare_stripes);
	compare(v);
	check_overlaps(v);
	if (v->c->fs->super.incompat & INCOMPAT_ZONED && !v->extents_lost)
		check_zones(v);
	return v->c->failed;
}
