// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/allocate.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/disk.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

#define LARGE_FILESYSTEM (50 * GIB)

/* The chunk to allocate. */
struct request {
	const struct raid_profile *raid;
	unsigned each;		  /* stripes per device */
	unsigned num, min;	  /* number of stripes */
	uint64_t stripe;	  /* bytes per stripe */
	uint64_t stripe_min;	  /* lower limit, no matter how small the filesystem is */
	uint64_t chunk_max;	  /* upper limit for the whole chunk, unless stripe_min exceeds it */
};

int mkfs_allocator_create(struct mkfs_device *devices, unsigned n, uint32_t nodesize, struct mkfs_allocator *ret,
			  struct btrkit_error *err)
{
	struct mkfs_allocator a = { .devices = devices, .nodesize = nodesize, .logical = MKFS_RESERVED };

	a.ends = calloc(n, sizeof(*a.ends));
	a.order = calloc(2ul * n, sizeof(*a.order));
	if (!a.ends || !a.order) {
		mkfs_allocator_release(&a);
		return err_nomem(err);
	}
	a.scratch = a.order + n;
	for (unsigned i = 0; i < n; i++)
		devices[i].bytes_used = 0;
	mkfs_allocator_add_device(&a);
	*ret = a;
	return 0;
}

void mkfs_allocator_release(struct mkfs_allocator *a)
{
	free(a->ends);
	free(a->order);
}

/* The newest device is tried first. */
void mkfs_allocator_add_device(struct mkfs_allocator *a)
{
	const unsigned d = a->num_devices++;

	memmove(a->order + 1, a->order, d * sizeof(*a->order));
	a->order[0] = d;
	a->ends[d] = MKFS_RESERVED;
	a->total_bytes += a->devices[d].total_bytes;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Returns the maximum number of stripes of a chunk: its item must fit in a leaf and, for system chunks, in
 * sys_chunk_array.
 */
static unsigned stripes_max(const struct mkfs_allocator *a, uint64_t type)
{
	const uint64_t one = sizeof(struct disk_chunk) + sizeof(struct disk_stripe);
	const uint64_t leaf = leaf_room(a->nodesize) - sizeof(struct disk_item) - one;
	const uint64_t array = SUPER_SYS_CHUNKS_SIZE - 2 * sizeof(struct disk_key) - 2 * one;

	return (unsigned)((type & BG_SYSTEM ? array : leaf) / sizeof(struct disk_stripe)) + 1;
}

static void choose_sizes(const struct mkfs_allocator *a, uint64_t type, struct request *r)
{
	r->stripe = 8 * MIB;
	r->stripe_min = MIB;
	r->chunk_max = 32 * MIB;
	if (r->raid->flag && type & BG_SYSTEM) {
		r->chunk_max = 16 * MIB;
	} else if (r->raid->flag && type & BG_DATA) {
		r->stripe = GIB;
		r->stripe_min = 64 * MIB;
		r->chunk_max = 10 * GIB;
	} else if (r->raid->flag) {
		r->stripe = r->chunk_max = a->total_bytes > LARGE_FILESYSTEM ? GIB : 256 * MIB;
		r->stripe_min = 32 * MIB;
	}
	r->chunk_max = lower(r->chunk_max, a->total_bytes / 10);
}

static struct request request_of(const struct mkfs_allocator *a, uint64_t type)
{
	const struct raid_profile *raid = raid_profile_find(type);
	struct request r = { .raid = raid,
			     .each = raid->flag == BG_DUP ? 2 : 1,
			     .num = raid->max_stripes,
			     .min = raid->min_stripes };

	/* Profiles without a fixed number of stripes use all devices. */
	if (!r.num)
		r.num = (unsigned)lower(stripes_max(a, type), a->num_devices);
	r.num -= r.num % (raid->flag == BG_RAID10 ? raid->copies : 1);
	choose_sizes(a, type, &r);
	return r;
}

static void decide_stripe(struct request *r)
{
	const unsigned data = (r->num - r->raid->parity) / r->raid->copies;

	if (r->stripe * data > r->chunk_max) {
		r->stripe = r->chunk_max / r->num;
		r->stripe -= r->stripe % CHUNK_STRIPE_LEN;
	}
	if (r->stripe < r->stripe_min)
		r->stripe = r->stripe_min;
	r->stripe -= r->stripe % CHUNK_STRIPE_LEN;
}

/*
 * Moves the first devices with enough free space, as many as are needed, to the front of the order.
 * @unfit: set to the largest free space among the devices that were skipped
 * @return the number of stripes that fit
 */
static unsigned pick(struct mkfs_allocator *a, const struct request *r, unsigned *picked, uint64_t *unfit)
{
	unsigned found = 0, left = 0, i = 0;

	*picked = 0;
	for (; i < a->num_devices && found < r->num; i++) {
		const unsigned d = a->order[i];
		const uint64_t total = a->devices[d].total_bytes, room = total > a->ends[d] ? total - a->ends[d] : 0;

		if (room < r->stripe * r->each) {
			a->scratch[left++] = d;
			if (room > *unfit)
				*unfit = room;
			continue;
		}
		a->order[(*picked)++] = d;
		found += r->each;
	}
	memcpy(a->order + *picked, a->scratch, left * sizeof(*a->order));
	return found;
}

static void reverse(unsigned *order, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		const unsigned d = order[i];

		order[i] = order[n - 1 - i];
		order[n - 1 - i] = d;
	}
}

/* Selects devices for the chunk and moves them to the front of the order. @return 0 or -ENOSPC */
static int find_devices(struct mkfs_allocator *a, struct request *r, unsigned *picked, struct btrkit_error *err)
{
	uint64_t unfit = 0;
	bool retried = false;
	unsigned found;

	for (;;) {
		if (r->num < r->min)
			break;
		decide_stripe(r);
		found = pick(a, r, picked, &unfit);
		if (found >= r->num)
			return 0;
		/* mkfs.btrfs puts the devices back one by one, which reverses them. */
		reverse(a->order, *picked);
		if (found >= r->min) {
			r->num = found - found % (r->raid->flag == BG_RAID10 ? r->raid->copies : 1);
		} else if (!retried && unfit) {
			r->stripe = unfit / r->each;
		} else {
			break;
		}
		retried = true;
	}
	return err_set(err, BTRKIT_NO_SPACE, "too small: no space for a chunk with profile %s", r->raid->name);
}

/* Places the chunk on the first @picked devices of the order. The last of them gets the first stripe. */
static int place(struct mkfs_allocator *a, uint64_t type, const struct request *r, unsigned picked,
		 struct mkfs_group *ret, struct btrkit_error *err)
{
	struct mkfs_group g = { .shape = { type, r->num }, .logical = a->logical, .stripe_length = r->stripe };

	g.length = r->stripe * raid_data_stripes(&g.shape);
	g.stripes = calloc(r->num, sizeof(*g.stripes));
	if (!g.stripes)
		return err_nomem(err);
	for (unsigned i = 0; i < r->num; i++) {
		const unsigned d = a->order[picked - 1 - i / r->each];

		g.stripes[i] = (struct mkfs_stripe){ d, a->ends[d] };
		a->ends[d] += r->stripe;
		a->devices[d].bytes_used += r->stripe;
	}
	a->logical += g.length;
	*ret = g;
	return 0;
}

int mkfs_allocate(struct mkfs_allocator *a, uint64_t type, struct mkfs_group *ret, struct btrkit_error *err)
{
	struct request r = request_of(a, type);
	unsigned picked = 0;
	int e = find_devices(a, &r, &picked, err);

	return e ? e : place(a, type, &r, picked, ret, err);
}

int mkfs_allocate_single(struct mkfs_allocator *a, uint64_t type, uint64_t length, struct mkfs_group *ret,
			 struct btrkit_error *err)
{
	const struct request r = { .raid = raid_profile_find(type), .each = 1, .num = 1, .stripe = length };

	return place(a, type, &r, 1, ret, err);
}
