// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/compact.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/super.h"
#include "lib/io/buffer.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/*
 * Room for the chunk tree. With less free space than this, Linux allocates another system chunk before it allocates any
 * other chunk.
 */
#define SYSTEM_STRIPE_MIN MIB
#define SYSTEM_BLOCKS 64u
#define DATA_STRIPE_MAX GIB
#define DATA_CHUNK_MAX (10 * GIB)
#define TREES_STRIPE_MAX (256 * MIB)
#define EMPTY_STRIPE CHUNK_STRIPE_LEN

/*
 * Free space for tree blocks that Linux needs to delete files. It reserves as much as the trees that every transaction
 * changes have, within limits. If the deletion of a file does not fit beside that reservation, Linux commits a
 * transaction for each file. Each change also copies its path in every tree before the old blocks are freed.
 */
#define KEPT_BACK_MIN 368
#define KEPT_BACK_MAX (512 * MIB)
#define REMOVAL_BLOCKS 256
#define COPIED_BLOCKS_MIN 96
#define COPIED_PART 16

#define COPY_BYTES (1u << 20)
/* Space for data is preallocated in larger steps, because writing to preallocated space is much faster. */
#define AHEAD (64 * MIB)

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns how many bytes of a device the filesystem may use. */
static uint64_t limit(const struct mkfs_compact *c, unsigned device)
{
	const struct mkfs_device *d = &c->devices[device];

	if (!c->grow)
		return d->total_bytes;
	return d->keeps_size && !c->dry ? d->io->size - d->io->size % c->opts->sectorsize : UINT64_MAX / 2;
}

static uint64_t room(const struct mkfs_compact *c, unsigned device)
{
	const uint64_t total = limit(c, device);

	return total > c->ends[device] ? total - c->ends[device] : 0;
}

/* Sorts the devices by free space, largest first. Devices with equal free space keep their order. */
static void choose_devices(struct mkfs_compact *c)
{
	for (unsigned i = 0; i < c->num_devices; i++) {
		unsigned at = i;

		for (; at && room(c, c->chosen[at - 1]) < room(c, i); at--)
			c->chosen[at] = c->chosen[at - 1];
		c->chosen[at] = i;
	}
}

static unsigned num_stripes(const struct mkfs_compact *c, const struct raid_profile *p)
{
	unsigned n = p->max_stripes ? p->max_stripes : c->num_devices;

	return n - n % (p->flag == BG_RAID10 ? p->copies : 1);
}

/* Adds a group with stripes on the chosen devices. The second stripe of DUP data is placed when the group is cut. */
static int place(struct mkfs_compact *c, enum mkfs_role role, uint64_t type, const struct raid_profile *profile,
		 uint64_t stripe, struct btrkit_error *err)
{
	struct mkfs_group g = { .role = role,
				.logical = c->logical,
				.end = c->logical,
				.shape = { type | profile->flag, num_stripes(c, profile) },
				.stripe_length = stripe };
	const bool dup = profile->flag == BG_DUP;
	int ret;

	g.stripes = calloc(g.shape.num_stripes, sizeof(*g.stripes));
	if (!g.stripes)
		return err_nomem(err);
	g.length = stripe * raid_data_stripes(&g.shape);
	for (unsigned i = 0; i < g.shape.num_stripes; i++) {
		const unsigned d = c->chosen[dup ? 0 : i];

		/* Until then it equals the first one, so that it adds no holes for superblocks. */
		if (dup && i && role == MKFS_DATA) {
			g.stripes[i] = g.stripes[0];
			continue;
		}
		g.stripes[i] = (struct mkfs_stripe){ d, c->ends[d] };
		c->ends[d] += stripe;
		c->devices[d].bytes_used += stripe;
	}
	ret = mkfs_layout_add(c->layout, &g, err);
	if (ret)
		free(g.stripes);
	else
		c->logical += g.length;
	return ret;
}

static uint64_t higher(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int mkfs_compact_begin(struct mkfs_compact *c, struct btrkit_error *err)
{
	c->ends = calloc(3ul * c->num_devices, sizeof(*c->ends));
	c->chosen = calloc(c->num_devices, sizeof(*c->chosen));
	if (!c->ends || !c->chosen)
		return err_nomem(err);
	c->ends_before_trees = c->ends + c->num_devices;
	c->reserved = c->ends_before_trees + c->num_devices;
	c->logical = MKFS_RESERVED;
	for (unsigned d = 0; d < c->num_devices; d++) {
		c->ends[d] = MKFS_RESERVED;
		c->devices[d].bytes_used = 0;
	}
	choose_devices(c);
	return place(c, MKFS_CHUNK_TREE, BG_SYSTEM, mkfs_profile(c->opts->metadata),
		     higher(SYSTEM_STRIPE_MIN, (uint64_t)SYSTEM_BLOCKS * c->opts->nodesize), err);
}

void mkfs_compact_release(struct mkfs_compact *c)
{
	free(c->ends);
	free(c->chosen);
	c->ends = NULL;
	c->chosen = NULL;
}

static struct mkfs_group *last_group(const struct mkfs_compact *c)
{
	return &c->layout->groups[c->layout->num_groups - 1];
}

static int open_data(struct mkfs_compact *c, struct btrkit_error *err)
{
	const struct raid_profile *profile = mkfs_profile(c->opts->data);
	const struct raid_shape shape = { profile->flag, num_stripes(c, profile) };
	const unsigned on_device = profile->flag == BG_DUP ? 2 : shape.num_stripes;
	uint64_t stripe = lower(DATA_STRIPE_MAX, DATA_CHUNK_MAX / raid_data_stripes(&shape));
	int ret;

	choose_devices(c);
	if (profile->flag == BG_DUP)
		stripe = lower(stripe, room(c, c->chosen[0]) / on_device);
	for (unsigned i = 0; profile->flag != BG_DUP && i < shape.num_stripes; i++)
		stripe = lower(stripe, room(c, c->chosen[i]));
	stripe -= stripe % CHUNK_STRIPE_LEN;
	if (!stripe)
		return err_set(err, BTRKIT_NO_SPACE, "too small: no space for more data");
	ret = place(c, MKFS_DATA, BG_DATA | (c->opts->mixed ? BG_METADATA : 0), profile, stripe, err);
	c->open = !ret;
	return ret;
}

/* Returns the first address from @at on where @length bytes do not overlap a superblock. */
static uint64_t beside_superblocks(uint64_t at, uint64_t length)
{
	for (unsigned mirror = 1; mirror < SUPER_MIRRORS; mirror++)
		if (at < super_offset(mirror) + SUPER_SIZE && at + length > super_offset(mirror))
			at = super_offset(mirror) + CHUNK_STRIPE_LEN;
	return at;
}

static int ensure_room(struct mkfs_compact *c, unsigned device, uint64_t at, uint64_t end, struct btrkit_error *err)
{
	struct btrkit_io *io = c->devices[device].io;
	int ret = 0;

	if (!c->grow || c->devices[device].keeps_size || end <= c->reserved[device])
		return 0;
	c->reserved[device] = at + (end - at + AHEAD - 1) / AHEAD * AHEAD;
	if (c->reserved[device] > io->size)
		ret = btrkit_io_resize(io, (c->reserved[device] + GIB - 1) / GIB * GIB, err);
	/* Blocks shared with the source need no preallocation. If there is no space, the write will report it. */
	if (!ret && !(c->opts->flags & BTRKIT_MKFS_SHARE) &&
	    btrkit_io_reserve(io, at, c->reserved[device] - at, NULL))
		c->reserved[device] = end;
	return ret;
}

/* Data in memory, or in a file of the host with which the image will share blocks. */
struct bytes {
	const uint8_t *data;
	int fd;
	uint64_t offset;
};

static int put_at(struct mkfs_compact *c, unsigned device, uint64_t physical, const struct bytes *from, size_t at,
		  size_t len, struct btrkit_error *err)
{
	int ret;

	if (c->dry)
		return 0;
	ret = ensure_room(c, device, physical, physical + len, err);
	if (!ret && from->data)
		ret = btrkit_io_write(c->devices[device].io, physical, from->data + at, len, err);
	else if (!ret)
		ret = btrkit_io_clone(c->devices[device].io, physical, from->fd, from->offset + at, len, err);
	if (ret && c->num_devices > 1)
		err_at_devid(err, device + 1u);
	c->bytes_written += len;
	return ret;
}

/* Writes the second copy of a DUP data group, whose address is only known when the group is cut. */
static int copy_stripe(struct mkfs_compact *c, const struct mkfs_group *g, struct btrkit_error *err)
{
	const uint64_t end = g->end - g->logical;
	uint8_t *buf = c->dry ? NULL : io_buffer(COPY_BYTES);
	int ret = 0;

	if (!buf)
		return c->dry ? 0 : err_nomem(err);
	for (uint64_t at = 0; !ret && at < end; at += COPY_BYTES) {
		const size_t n = (size_t)lower(COPY_BYTES, end - at);

		ret = btrkit_io_read(c->devices[g->stripes[0].device].io, g->stripes[0].physical + at, buf, n, err);
		if (!ret)
			ret = put_at(c, g->stripes[1].device, g->stripes[1].physical + at,
				     &(struct bytes){ .data = buf }, 0, n, err);
	}
	free(buf);
	return ret;
}

/* Shrinks the last data group to its contents and returns the unused space to the devices. */
static int close_data(struct mkfs_compact *c, struct btrkit_error *err)
{
	struct mkfs_group *g = last_group(c);
	const uint64_t old = g->stripe_length;
	uint64_t stripe = mkfs_group_extent_used(g, g->end);
	const bool dup = g->shape.type & BG_DUP;

	if (!stripe)
		stripe = lower(EMPTY_STRIPE, old);
	c->logical -= g->length;
	mkfs_group_cut(g, stripe * raid_data_stripes(&g->shape));
	c->logical += g->length;
	c->open = false;
	for (unsigned i = 0; i < (dup ? 1 : g->shape.num_stripes); i++) {
		c->ends[g->stripes[i].device] -= old - stripe;
		c->devices[g->stripes[i].device].bytes_used -= old - stripe;
	}
	if (!dup)
		return 0;
	g->stripes[1].physical = beside_superblocks(c->ends[g->stripes[1].device], stripe);
	c->ends[g->stripes[1].device] = g->stripes[1].physical + stripe;
	c->devices[g->stripes[1].device].bytes_used += stripe;
	if (c->ends[g->stripes[1].device] > limit(c, g->stripes[1].device))
		return err_set(err, BTRKIT_NO_SPACE, "too small: no space for the second copy of data");
	return copy_stripe(c, g, err);
}

/*
 * Finds the next piece of free space in the open group, at its end or after the hole there. @return whether it has @min
 * bytes
 */
static bool take_from(struct mkfs_group *g, uint64_t min, struct mkfs_range *ret)
{
	uint64_t at = g->end;

	for (unsigned i = 0; i < g->num_holes; i++) {
		struct mkfs_range *hole = &g->holes[i];

		if (hole->start + hole->length <= at)
			continue;
		if (hole->start >= at + min) {
			*ret = (struct mkfs_range){ at, hole->start - at };
			return true;
		}
		/* The piece before the hole is too small: add it to the hole. */
		if (hole->start > at) {
			hole->length += hole->start - at;
			hole->start = at;
		}
		at = hole->start + hole->length;
	}
	*ret = (struct mkfs_range){ at, g->logical + g->length - at };
	return at + min <= g->logical + g->length;
}

bool mkfs_compact_goes_on(struct mkfs_compact *c, uint64_t min)
{
	struct mkfs_range range;

	return c->open && take_from(last_group(c), min, &range);
}

int mkfs_compact_take(struct mkfs_compact *c, uint64_t min, uint64_t max, struct mkfs_range *ret,
		      struct btrkit_error *err)
{
	struct mkfs_group *g;
	int r;

	while (!c->open || !take_from(last_group(c), min, ret)) {
		r = c->open ? close_data(c, err) : 0;
		if (!r)
			r = open_data(c, err);
		if (r)
			return r;
		if (last_group(c)->length < min)
			return err_set(err, BTRKIT_NO_SPACE, "too small: no space for more data");
	}
	g = last_group(c);
	ret->length = lower(ret->length, max);
	g->end = ret->start + ret->length;
	g->used += ret->length;
	return 0;
}

static int put(struct mkfs_compact *c, uint64_t logical, const struct bytes *from, size_t len,
	       struct btrkit_error *err)
{
	const struct mkfs_group *g = last_group(c);
	const unsigned copies = g->shape.type & BG_DUP ? 1 : raid_copies(&g->shape);
	int ret = 0;

	while (g->logical > logical)
		g--;
	for (unsigned copy = 0; copy < copies; copy++)
		for (size_t done = 0; !ret && done < len;) {
			const struct raid_place p = raid_map(&g->shape, logical - g->logical + done, copy);
			const struct mkfs_stripe *s = &g->stripes[p.stripe];
			const size_t n = (size_t)lower(p.length, len - done);

			ret = put_at(c, s->device, s->physical + p.offset, from, done, n, err);
			done += n;
		}
	return ret;
}

int mkfs_compact_write(struct mkfs_compact *c, uint64_t logical, const void *data, size_t len,
		       struct btrkit_error *err)
{
	return put(c, logical, &(struct bytes){ .data = data }, len, err);
}

int mkfs_compact_share(struct mkfs_compact *c, uint64_t logical, int fd, uint64_t offset, size_t len,
		       struct btrkit_error *err)
{
	return put(c, logical, &(struct bytes){ .fd = fd, .offset = offset }, len, err);
}

/*
 * Releases preallocated space after the data: the free space among and after the trees should be holes in the image
 * file.
 */
static int give_back_reserved(struct mkfs_compact *c, struct btrkit_error *err)
{
	int ret = 0;

	for (unsigned d = 0; !ret && d < c->num_devices; d++)
		if (c->reserved[d] > c->ends[d])
			ret = btrkit_io_resize(c->devices[d].io, c->ends[d], err);
	return ret;
}

int mkfs_compact_end_data(struct mkfs_compact *c, struct btrkit_error *err)
{
	int ret = 0;

	/* An empty filesystem has a data group, too, because that records the data profile. */
	if (last_group(c)->role == MKFS_CHUNK_TREE)
		ret = open_data(c, err);
	if (!ret && c->open)
		ret = close_data(c, err);
	if (!ret)
		ret = give_back_reserved(c, err);
	c->before_trees = c->layout->num_groups;
	c->logical_before_trees = c->logical;
	memcpy(c->ends_before_trees, c->ends, c->num_devices * sizeof(*c->ends));
	return ret;
}

static void drop_trees(struct mkfs_compact *c)
{
	while (c->layout->num_groups > c->before_trees) {
		const struct mkfs_group *g = last_group(c);

		for (unsigned i = 0; i < g->shape.num_stripes; i++)
			c->devices[g->stripes[i].device].bytes_used -= g->stripe_length;
		mkfs_layout_drop_last(c->layout);
	}
	c->logical = c->logical_before_trees;
	memcpy(c->ends, c->ends_before_trees, c->num_devices * sizeof(*c->ends));
}

static uint64_t spare(const struct mkfs_compact *c, uint64_t blocks)
{
	const uint64_t kept_back = lower(c->global_blocks, KEPT_BACK_MAX / c->opts->nodesize);

	return higher(kept_back, KEPT_BACK_MIN) + REMOVAL_BLOCKS + higher(blocks / COPIED_PART, COPIED_BLOCKS_MIN);
}

int mkfs_compact_trees(struct mkfs_compact *c, uint64_t blocks, struct btrkit_error *err)
{
	const struct raid_profile *profile = mkfs_profile(c->opts->metadata);
	const struct raid_shape shape = { profile->flag, num_stripes(c, profile) };
	const uint64_t wanted = blocks + spare(c, blocks);
	uint64_t have = 0;
	int ret = 0;

	drop_trees(c);
	while (!ret && have < wanted) {
		uint64_t stripe = (wanted - have) * c->opts->nodesize / raid_data_stripes(&shape);
		const struct mkfs_group *g;

		stripe = (stripe + CHUNK_STRIPE_LEN - 1) / CHUNK_STRIPE_LEN * CHUNK_STRIPE_LEN;
		stripe = lower(stripe, TREES_STRIPE_MAX);
		choose_devices(c);
		ret = place(c, MKFS_TREES, BG_METADATA | (c->opts->mixed ? BG_DATA : 0), profile, stripe, err);
		if (ret)
			break;
		mkfs_layout_count_slots(c->layout, c->opts->nodesize);
		g = last_group(c);
		have = g->first_slot + g->slots;
	}
	if (!ret)
		ret = mkfs_compact_check(c, err);
	c->layout->total_bytes = 0;
	for (unsigned d = 0; !ret && d < c->num_devices; d++) {
		if (c->grow)
			c->devices[d].total_bytes = mkfs_compact_device_size(c, d);
		c->layout->total_bytes += c->devices[d].total_bytes;
	}
	return ret;
}

int mkfs_compact_check(const struct mkfs_compact *c, struct btrkit_error *err)
{
	for (unsigned d = 0; d < c->num_devices; d++) {
		const uint64_t needed = mkfs_compact_device_size(c, d), has = limit(c, d);

		if (needed <= has)
			continue;
		(void)err_set(err, BTRKIT_NO_SPACE,
			      "too small: %" PRIu64 " bytes, %" PRIu64 " are needed for the contents", has, needed);
		if (c->num_devices > 1)
			err_at_devid(err, d + 1u);
		return -ENOSPC;
	}
	return 0;
}

uint64_t mkfs_compact_device_size(const struct mkfs_compact *c, unsigned device)
{
	const uint64_t end = c->ends[device], sector = c->opts->sectorsize;
	uint64_t room_left = 0;

	if (c->grow)
		room_left = c->opts->free_bytes + end / 100 * c->opts->free_percent;
	room_left = (room_left + sector - 1) / sector * sector;
	if (c->grow && end + room_left < c->opts->byte_count)
		return c->opts->byte_count / sector * sector;
	return end + room_left;
}
