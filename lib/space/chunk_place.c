// SPDX-License-Identifier: LGPL-2.1-or-later
/* Location and size of new chunks, as in Linux 6.18. */
#include "lib/space/chunk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/dev.h"
#include "lib/space/space_impl.h"
#include "lib/volume/raid_map.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

#define RESERVED MIB		/* at the beginning of a device */
#define STRIPE_MAX GIB
#define STRIPE_UNIT (16 * MIB) /* stripes are rounded up to this if the chunk would be too large */
#define LARGE_FILESYSTEM (50 * GIB)

/* Requirements of a profile. */
struct rules {
	const struct raid_profile *raid;
	unsigned dev_stripes; /* stripes on each device */
	unsigned devs_min, devs_max, devs_increment;
};

/* A device, and the place on it for the chunk. */
struct place {
	uint64_t devid;
	uint64_t total, unused; /* bytes */
	uint64_t offset, length;
};

static struct rules rules_of(const struct raid_profile *raid)
{
	const unsigned each = raid->flag == BG_DUP ? 2 : 1;

	return (struct rules){ .raid = raid,
			       .dev_stripes = each,
			       .devs_min = raid->min_stripes / each,
			       .devs_max = raid->max_stripes ? raid->max_stripes / each : UINT32_MAX,
			       .devs_increment = raid->copies / each };
}

/* Number of devices on which chunks may be placed. */
static unsigned num_usable(const struct space *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < volume_num_devices(s->fs->volume); i++)
		n += volume_takes_chunks(s->fs->volume, volume_device(s->fs->volume, i).devid);
	return n;
}

/* Linux takes the most redundant of the profiles in use for the type, if there are enough devices. */
static uint64_t choose_profile(const struct space *s, uint64_t type)
{
	static const uint64_t order[] = { BG_RAID1C4, BG_RAID6,	 BG_RAID1C3, BG_RAID5,
					  BG_RAID10,  BG_RAID1, BG_DUP,	 BG_RAID0 };
	const uint64_t *set = &s->profiles[space_type_index(type)];
	uint64_t there = 0;

	if (*set != CHUNK_ANY_PROFILE && rules_of(raid_profile_find(*set)).devs_min <= num_usable(s))
		return *set;
	for (size_t i = 0; i < s->num_groups; i++)
		if (!s->groups[i]->removed && s->groups[i]->item.flags & type)
			there |= s->groups[i]->item.flags;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (there & order[i] && rules_of(raid_profile_find(order[i])).devs_min <= num_usable(s))
			return order[i];
	return 0;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Maximum number of stripes: the item must fit into a leaf, and that of a system chunk into the superblock's array. */
static uint64_t stripes_max(const struct space *s, uint64_t type)
{
	const uint64_t leaf = leaf_room(s->fs->geometry.nodesize) - sizeof(struct disk_item);
	const uint64_t array = SUPER_SYS_CHUNKS_SIZE - 2 * sizeof(struct disk_key) - sizeof(struct disk_chunk);
	const uint64_t room = (type & BG_SYSTEM ? array : leaf) - sizeof(struct disk_chunk);

	return lower(room / sizeof(struct disk_stripe) + 1, CHUNK_STRIPES_MAX);
}

static uint64_t chunk_size_max(uint64_t type, uint64_t total)
{
	uint64_t max = total > LARGE_FILESYSTEM ? GIB : 256 * MIB;

	if (type & BG_DATA)
		max = 10 * GIB;
	else if (type & BG_SYSTEM)
		max = 32 * MIB;
	return max;
}

/* Takes the first hole of @want bytes, or else the largest. @return whether it has @want bytes */
static bool take_hole(struct place *p, uint64_t from, uint64_t to, uint64_t want)
{
	if (to > from && to - from > p->length) {
		p->offset = from;
		p->length = to - from;
	}
	return p->length >= want;
}

/* Like take_hole(), except for the space of chunks removed in this transaction, which the last commit still uses. */
static bool take_holes(const struct space *s, struct place *p, uint64_t from, uint64_t to, uint64_t want)
{
	while (from < to) {
		uint64_t start = to, end = to;

		for (size_t i = 0; i < s->num_gone; i++) {
			const struct volume_chunk *c = s->gone[i];

			for (unsigned k = 0; k < c->num_stripes; k++) {
				const struct volume_stripe *gone = &c->stripes[k];

				if (gone->devid != p->devid || gone->physical >= start ||
				    gone->physical + c->stripe_length <= from)
					continue;
				start = gone->physical;
				end = start + c->stripe_length;
			}
		}
		if (take_hole(p, from, start, want))
			return true;
		from = end;
	}
	return false;
}

/* Finds a hole on a device. @c: cursor of the device tree */
static int find_hole(struct space *s, struct cursor *c, struct place *p, uint64_t want, struct btrkit_error *err)
{
	uint64_t pos = RESERVED;
	struct dev_extent e;
	int ret;

	/* The extent before may extend past this position. */
	ret = cursor_seek_back(c, &KEY(p->devid, KEY_DEV_EXTENT, pos), err);
	if (ret == 1)
		ret = cursor_seek(c, &KEY(p->devid, KEY_DEV_EXTENT, 0), err);
	for (; !ret; ret = cursor_next(c, err)) {
		const struct btrkit_key *key = &c->item.key;

		if (key->objectid > p->devid || (key->objectid == p->devid && key->type > KEY_DEV_EXTENT))
			break;
		if (key->objectid != p->devid || key->type != KEY_DEV_EXTENT)
			continue;
		ret = cursor_blame(c, dev_extent_decode(&s->fs->items, &c->item, &e, err), err);
		if (ret)
			return ret;
		if (e.physical >= p->total || take_holes(s, p, pos, e.physical, want))
			break;
		if (e.physical + e.length > pos)
			pos = e.physical + e.length;
	}
	if (ret < 0)
		return ret;
	if (p->length < want)
		(void)take_holes(s, p, pos, p->total, want);
	return 0;
}

/* Reads all devices from the current chunk tree. */
static int read_devices(struct space *s, struct place *places, size_t *n, struct btrkit_error *err)
{
	const size_t max = volume_num_devices(s->fs->volume);
	struct dev_item dev;
	struct cursor c;
	int ret;

	*n = 0;
	cursor_init(&c, s->fs, &s->fs->chunk_tree);
	for (ret = cursor_seek(&c, &KEY(OID_DEV_ITEMS, KEY_DEV_ITEM, 0), err);
	     !ret && c.item.key.objectid == OID_DEV_ITEMS && c.item.key.type == KEY_DEV_ITEM;
	     ret = cursor_next(&c, err)) {
		ret = dev_item_decode(&c.item, &dev, err);
		if (!ret && *n == max)
			ret = err_corrupt(err, NULL, "more device items than the %zu devices of the superblock", max);
		if (ret) {
			cursor_blame(&c, ret, err);
			break;
		}
		if (!volume_takes_chunks(s->fs->volume, dev.devid))
			continue;
		places[(*n)++] = (struct place){ .devid = dev.devid, .total = dev.total_bytes,
						 .unused = dev.total_bytes - dev.bytes_used };
	}
	cursor_release(&c);
	return ret < 0 ? ret : 0;
}

/* Keeps the devices that have space, and determines how much. */
static int find_holes(struct space *s, const struct rules *rules, uint64_t want, struct place *places, size_t *n,
		      struct btrkit_error *err)
{
	const uint64_t min = (uint64_t)CHUNK_STRIPE_LEN * rules->dev_stripes;
	struct tree_root root;
	struct cursor c;
	size_t kept = 0;
	int ret;

	ret = fs_find_root(s->fs, OID_DEV_TREE, &root, NULL, err);
	if (ret)
		return ret;
	cursor_init(&c, s->fs, &root);
	for (size_t i = 0; i < *n && !ret; i++) {
		struct place *p = &places[i];

		if (p->unused < min)
			continue;
		ret = find_hole(s, &c, p, want, err);
		p->length = lower(p->length, want);
		if (p->length >= min)
			places[kept++] = *p;
	}
	cursor_release(&c);
	*n = kept;
	return ret;
}

/* Devices with most space come first. */
static int by_room(const struct place *x, const struct place *y)
{
	if (x->length != y->length)
		return x->length > y->length ? -1 : 1;
	return x->unused > y->unused ? -1 : x->unused < y->unused;
}

static void swap(struct place *p, size_t i, size_t k)
{
	const struct place old = p[i];

	p[i] = p[k];
	p[k] = old;
}

/*
 * Moves @root of a heap of @n elements to its place. The path of the larger children is followed down to the end, and
 * then up again to the last child that is larger than the root.
 */
static void sift(struct place *p, size_t root, size_t n)
{
	size_t at = root, to;

	while (2 * at + 2 < n)
		at = 2 * at + 1 + (by_room(&p[2 * at + 1], &p[2 * at + 2]) <= 0);
	if (2 * at + 2 == n)
		at = 2 * at + 1;
	while (at != root && by_room(&p[root], &p[at]) >= 0)
		at = (at - 1) / 2;
	for (to = at; at != root; swap(p, at, to))
		at = (at - 1) / 2;
}

/*
 * Sorts by space. Equal devices end up in the same order as after Linux's heapsort, starting from device ID order: the
 * largest element is removed, then the larger of its children, and the heap is repaired for both, until three are left.
 */
static void sort_by_room(struct place *p, size_t n)
{
	for (size_t i = n / 2; i--;)
		sift(p, i, n);
	while (n > 3) {
		size_t second;

		swap(p, 0, --n);
		second = 1 + (by_room(&p[1], &p[2]) <= 0);
		swap(p, second, --n);
		sift(p, second, n);
		sift(p, 0, n);
	}
	if (n > 1)
		swap(p, 0, --n);
	if (n == 2 && by_room(&p[0], &p[1]) > 0)
		swap(p, 0, 1);
}

/* Uses as many stripes as there are devices for, with the length of the smallest hole at most. */
static void lay_out(const struct rules *rules, const struct place *places, size_t n, uint64_t chunk_max,
		    struct chunk_plan *plan)
{
	const unsigned stripes = (unsigned)n * rules->dev_stripes;
	const unsigned data = raid_data_stripes(&(struct raid_shape){ plan->type, stripes });
	uint64_t stripe = places[n - 1].length / rules->dev_stripes;

	if (stripe * data > chunk_max)
		stripe = lower((chunk_max / data + STRIPE_UNIT - 1) / STRIPE_UNIT * STRIPE_UNIT, stripe);
	stripe = lower(stripe, STRIPE_MAX);
	stripe -= stripe % CHUNK_STRIPE_LEN;
	plan->length = stripe * data;
	plan->num_stripes = stripes;
	for (unsigned i = 0; i < stripes; i++) {
		const struct place *p = &places[i / rules->dev_stripes];

		plan->stripes[i].devid = p->devid;
		plan->stripes[i].physical = p->offset + i % rules->dev_stripes * stripe;
	}
}

/* After all existing chunks, and those removed in this transaction. */
static uint64_t next_logical(const struct space *s)
{
	const struct block_group *last = s->num_groups ? &s->groups[s->num_groups - 1]->item : NULL;

	return last ? last->start + last->length : 0;
}

static int place(struct space *s, const struct rules *rules, struct place *places, struct chunk_plan *plan,
		 struct btrkit_error *err)
{
	uint64_t total = 0, max;
	size_t n;
	int ret;

	ret = read_devices(s, places, &n, err);
	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++) {
		total += places[i].total;
		plan->unused += places[i].unused;
	}
	max = chunk_size_max(plan->type, total);
	ret = find_holes(s, rules, lower(max, STRIPE_MAX) * rules->dev_stripes, places, &n, err);
	if (ret)
		return ret;
	sort_by_room(places, n);
	n -= n % rules->devs_increment;
	if (n < rules->devs_min)
		return err_set(err, BTRKIT_NO_SPACE, "no device has room for another chunk");
	n = lower(n, lower(rules->devs_max, stripes_max(s, plan->type) / rules->dev_stripes));
	n -= n % rules->devs_increment;
	/* At most a tenth of the filesystem. */
	lay_out(rules, places, n, lower(max, total / 10), plan);
	if (plan->logical + plan->length < plan->logical)
		return err_set(err, BTRKIT_NO_SPACE, "no address is left for another chunk");
	return 0;
}

static int make_plan(struct space *s, uint64_t type, struct chunk_plan *ret, struct btrkit_error *err)
{
	const struct rules rules = rules_of(raid_profile_find(type));
	struct chunk_plan plan = { .logical = next_logical(s), .type = type };
	struct place *places;
	int r;

	places = calloc(volume_num_devices(s->fs->volume), sizeof(*places));
	if (!places)
		return err_nomem(err);
	r = place(s, &rules, places, &plan, err);
	free(places);
	if (!r)
		*ret = plan;
	return r;
}

/* In mixed block groups, chunks for data and metadata are the same. */
static uint64_t type_of(const struct space *s, uint64_t type)
{
	const bool mixed = s->fs->super.incompat & INCOMPAT_MIXED_GROUPS;

	return mixed && type != BG_SYSTEM ? BG_DATA | BG_METADATA : type;
}

int chunk_plan(struct space *s, uint64_t type, struct chunk_plan *ret, struct btrkit_error *err)
{
	const uint64_t full = type_of(s, type);

	return make_plan(s, full | choose_profile(s, full), ret, err);
}

static int check_profile(const struct space *s, uint64_t profile, struct btrkit_error *err)
{
	const struct raid_profile *raid = raid_profile_find(profile);
	const unsigned needs = rules_of(raid).devs_min, n = num_usable(s);

	if (profile != raid->flag)
		return err_set(err, BTRKIT_INVALID, "there is no profile 0x%" PRIx64, profile);
	if (needs > n)
		return err_set(err, BTRKIT_INVALID, "profile %s needs %u devices, there are %u", raid->name, needs, n);
	return 0;
}

int chunk_plan_profile(struct space *s, uint64_t type, uint64_t profile, struct chunk_plan *ret,
		       struct btrkit_error *err)
{
	int r = check_profile(s, profile, err);

	return r ? r : make_plan(s, type_of(s, type) | profile, ret, err);
}

int chunk_set_profile(struct space *s, uint64_t type, uint64_t profile, struct btrkit_error *err)
{
	int ret = profile == CHUNK_ANY_PROFILE ? 0 : check_profile(s, profile, err);

	if (!ret)
		s->profiles[space_type_index(type_of(s, type))] = profile;
	return ret;
}
