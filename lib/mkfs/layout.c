// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/layout.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/super.h"
#include "lib/mkfs/allocate.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* The initial groups, which are on the first device only. Those with another profile are replaced. */
#define FIRST_SYSTEM_LENGTH (4 * MIB)
#define LARGE_NODESIZE 65536u

const struct raid_profile *mkfs_profile(enum btrkit_profile p)
{
	static const uint64_t flags[] = { [BTRKIT_PROFILE_SINGLE] = 0,		 [BTRKIT_PROFILE_DUP] = BG_DUP,
					  [BTRKIT_PROFILE_RAID0] = BG_RAID0,	 [BTRKIT_PROFILE_RAID1] = BG_RAID1,
					  [BTRKIT_PROFILE_RAID1C3] = BG_RAID1C3, [BTRKIT_PROFILE_RAID1C4] = BG_RAID1C4,
					  [BTRKIT_PROFILE_RAID10] = BG_RAID10,	 [BTRKIT_PROFILE_RAID5] = BG_RAID5,
					  [BTRKIT_PROFILE_RAID6] = BG_RAID6 };

	return raid_profile_find(flags[p]);
}

unsigned mkfs_profile_devices(const struct raid_profile *p)
{
	return p->flag == BG_DUP ? 1 : p->min_stripes;
}

/* The limits of mkfs.btrfs, so that scripts do not see a difference. */
uint64_t mkfs_layout_min_device(const struct btrkit_mkfs_options *o)
{
	const uint64_t first = MKFS_RESERVED + FIRST_SYSTEM_LENGTH + 2 * 8 * MIB;
	const uint64_t metadata = o->metadata == BTRKIT_PROFILE_SINGLE ? 16 * MIB : 40 * MIB;
	const uint64_t data = o->data == BTRKIT_PROFILE_SINGLE ? 8 * MIB : 64 * MIB;
	const unsigned metadata_each = o->metadata == BTRKIT_PROFILE_DUP ? 2 : 1,
		       data_each = o->data == BTRKIT_PROFILE_DUP ? 2 : 1;

	if (o->mixed)
		return 2 * (FIRST_SYSTEM_LENGTH + 1024ull * o->nodesize);
	return first + metadata * metadata_each + data * data_each;
}

static int insert_hole(struct mkfs_group *g, uint64_t start, uint64_t length, struct btrkit_error *err)
{
	struct mkfs_range *more;
	unsigned i = g->num_holes;

	for (; i && g->holes[i - 1].start >= start; i--)
		if (g->holes[i - 1].start == start)
			return 0;
	more = reallocarray(g->holes, g->num_holes + 1u, sizeof(*more));
	if (!more)
		return err_nomem(err);
	memmove(more + i + 1, more + i, (g->num_holes - i) * sizeof(*more));
	more[i] = (struct mkfs_range){ start, length };
	g->holes = more;
	g->num_holes++;
	return 0;
}

/*
 * No block may overlap a superblock mirror: exclude the strip that it is in, or the whole full stripe if the group has
 * parity.
 */
int mkfs_group_find_holes(struct mkfs_group *g, struct btrkit_error *err)
{
	const bool parity = raid_profile_find(g->shape.type)->parity;
	int ret = 0;

	for (unsigned i = 0; i < g->shape.num_stripes; i++) {
		for (unsigned mirror = 1; !ret && mirror < SUPER_MIRRORS; mirror++) {
			const uint64_t full_stripe = CHUNK_STRIPE_LEN * (parity ? raid_data_stripes(&g->shape) : 1);
			const uint64_t at = super_offset(mirror), from = g->stripes[i].physical;
			uint64_t offset;

			if (at < from || at >= from + g->stripe_length)
				continue;
			(void)raid_unmap(&g->shape, i, at - from, &offset);
			ret = insert_hole(g, g->logical + offset - offset % full_stripe, full_stripe, err);
		}
	}
	return ret;
}

int mkfs_layout_add(struct mkfs_layout *l, const struct mkfs_group *g, struct btrkit_error *err)
{
	struct mkfs_group *more = reallocarray(l->groups, l->num_groups + 1u, sizeof(*more));
	int ret;

	if (!more)
		return err_nomem(err);
	l->groups = more;
	more[l->num_groups] = *g;
	ret = mkfs_group_find_holes(&more[l->num_groups], err);
	if (ret)
		free(more[l->num_groups].holes);
	else
		l->num_groups++;
	return ret;
}

static void release_group(struct mkfs_group *g)
{
	free(g->stripes);
	free(g->holes);
}

void mkfs_layout_drop_last(struct mkfs_layout *l)
{
	release_group(&l->groups[--l->num_groups]);
}

void mkfs_group_cut(struct mkfs_group *g, uint64_t length)
{
	g->length = length;
	g->stripe_length = length / raid_data_stripes(&g->shape);
	while (g->num_holes && g->holes[g->num_holes - 1].start >= g->logical + length)
		g->num_holes--;
}

struct wanted {
	uint64_t type, profile;
	enum mkfs_role role;
	struct mkfs_group first; /* initial group on the first device */
};

static int make_first(struct mkfs_allocator *a, struct wanted *w, struct btrkit_error *err)
{
	return w->type == BG_SYSTEM ? mkfs_allocate_single(a, w->type, FIRST_SYSTEM_LENGTH, &w->first, err) :
				      mkfs_allocate(a, w->type, &w->first, err);
}

/* Adds the initial group to the layout or, if @anew, a group with the requested profile. */
static int take_group(struct mkfs_allocator *a, struct wanted *w, bool anew, struct mkfs_layout *l,
		      struct btrkit_error *err)
{
	struct mkfs_group g = w->first;
	int ret = 0;

	if (anew != !!w->profile)
		return 0;
	if (anew)
		ret = mkfs_allocate(a, w->type | w->profile, &g, err);
	if (ret)
		return ret;
	g.role = w->role;
	g.end = g.logical;
	ret = mkfs_layout_add(l, &g, err);
	if (ret && anew)
		free(g.stripes);
	else if (!ret && !anew)
		w->first.stripes = NULL;
	return ret;
}

/* Releases an initial group that is not used. */
static void drop_first(struct mkfs_device *devices, struct wanted *w)
{
	if (w->first.stripes)
		devices[0].bytes_used -= w->first.stripe_length;
	free(w->first.stripes);
}

/*
 * Places groups where mkfs.btrfs does: it starts with single groups on the first device, and then allocates those with
 * another profile after them. The gaps are useful: if all free space were in one piece, Linux would allocate it to
 * data, and a balance of a small device would run out of metadata space.
 */
int mkfs_layout(const struct btrkit_mkfs_options *o, struct mkfs_device *devices, unsigned n, struct mkfs_layout *l,
		struct btrkit_error *err)
{
	struct wanted wanted[] = {
		{ BG_SYSTEM, mkfs_profile(o->metadata)->flag, MKFS_CHUNK_TREE, { 0 } },
		{ BG_METADATA | (o->mixed ? BG_DATA : 0), mkfs_profile(o->metadata)->flag, MKFS_TREES, { 0 } },
		{ BG_DATA, mkfs_profile(o->data)->flag, MKFS_DATA, { 0 } },
	};
	const unsigned types = o->mixed ? 2 : 3;
	struct mkfs_allocator a;
	int ret;

	*l = (struct mkfs_layout){ 0 };
	ret = mkfs_allocator_create(devices, n, o->nodesize, &a, err);
	if (ret)
		return ret;
	for (unsigned i = 0; !ret && i < types; i++)
		ret = make_first(&a, &wanted[i], err);
	for (unsigned i = 1; i < n; i++)
		mkfs_allocator_add_device(&a);
	for (unsigned i = 0; !ret && i < 2 * types; i++)
		ret = take_group(&a, &wanted[i % types], i >= types, l, err);
	for (unsigned i = 0; i < types; i++)
		drop_first(devices, &wanted[i]);
	l->total_bytes = a.total_bytes;
	mkfs_allocator_release(&a);
	mkfs_layout_count_slots(l, o->nodesize);
	return ret;
}

void mkfs_layout_release(struct mkfs_layout *l)
{
	while (l->num_groups)
		mkfs_layout_drop_last(l);
	free(l->groups);
	l->groups = NULL;
}

/*
 * In the smallest filesystem of mkfs.btrfs with 64 KiB nodes and one copy of metadata, Linux cannot create anything: it
 * needs space for one more metadata group before it creates the first directory.
 */
static uint64_t more_for_large_nodes(const struct btrkit_mkfs_options *o, unsigned n)
{
	return n == 1 && !o->mixed && o->metadata == BTRKIT_PROFILE_SINGLE && o->nodesize == LARGE_NODESIZE ? 8 * MIB :
													      0;
}

/* mkfs.btrfs has no separate minimum for mixed groups with a profile; it fails when it runs out of space. */
int mkfs_layout_min_size(const struct btrkit_mkfs_options *o, unsigned n, uint64_t *ret, struct btrkit_error *err)
{
	struct mkfs_device *devices = calloc(n, sizeof(*devices));
	uint64_t size = mkfs_layout_min_device(o) + more_for_large_nodes(o, n);
	struct btrkit_error why;
	struct mkfs_layout l;
	int r;

	if (!devices)
		return err_nomem(err);
	do {
		for (unsigned i = 0; i < n; i++)
			devices[i].total_bytes = size;
		r = mkfs_layout(o, devices, n, &l, &why);
		mkfs_layout_release(&l);
		size += MIB;
	} while (r == -ENOSPC && size < GIB);
	free(devices);
	if (!r)
		*ret = size - MIB;
	else if (err)
		*err = why;
	return r;
}

const struct mkfs_group *mkfs_system_group(const struct mkfs_layout *l)
{
	return mkfs_layout_slot(l, MKFS_CHUNK_TREE, 0);
}

void mkfs_layout_count_slots(struct mkfs_layout *l, uint32_t nodesize)
{
	uint64_t next[] = { [MKFS_CHUNK_TREE] = 0, [MKFS_TREES] = 0, [MKFS_DATA] = 0 };

	for (unsigned i = 0; i < l->num_groups; i++) {
		struct mkfs_group *g = &l->groups[i];
		uint64_t lost = 0;

		for (unsigned h = 0; h < g->num_holes; h++) {
			const uint64_t start = g->holes[h].start - g->logical;

			lost += (start + g->holes[h].length + nodesize - 1) / nodesize - start / nodesize;
		}
		g->slots = g->length / nodesize - lost;
		g->first_slot = next[g->role];
		next[g->role] += g->slots;
	}
}

const struct mkfs_group *mkfs_layout_slot(const struct mkfs_layout *l, enum mkfs_role role, uint64_t slot)
{
	const struct mkfs_group *last = NULL;

	for (unsigned i = 0; i < l->num_groups && !(last && slot < last->first_slot + last->slots); i++)
		if (l->groups[i].role == role)
			last = &l->groups[i];
	return last;
}

uint64_t mkfs_group_block(const struct mkfs_group *g, uint32_t nodesize, uint64_t slot)
{
	for (unsigned i = 0; i < g->num_holes; i++) {
		uint64_t first = (g->holes[i].start - g->logical) / nodesize;
		uint64_t end = (g->holes[i].start + g->holes[i].length - g->logical + nodesize - 1) / nodesize;

		if (slot < first)
			break;
		slot += end - first;
	}
	return g->logical + slot * nodesize;
}

uint64_t mkfs_group_blocks_end(const struct mkfs_group *g, uint32_t nodesize, uint64_t used)
{
	return used ? mkfs_group_block(g, nodesize, used - 1) + nodesize : g->logical;
}

bool mkfs_group_next_free(const struct mkfs_group *g, uint64_t end, uint64_t from, struct mkfs_range *ret)
{
	for (unsigned i = 0; i < g->num_holes && g->holes[i].start < end; i++) {
		if (g->holes[i].start < from)
			continue;
		*ret = g->holes[i];
		while (++i < g->num_holes && g->holes[i].start == ret->start + ret->length)
			ret->length += g->holes[i].length;
		return true;
	}
	if (from < end)
		from = end;
	*ret = (struct mkfs_range){ from, g->logical + g->length - from };
	return from < g->logical + g->length;
}

uint64_t mkfs_group_extent_used(const struct mkfs_group *g, uint64_t end)
{
	const uint64_t full_stripe = (uint64_t)CHUNK_STRIPE_LEN * raid_data_stripes(&g->shape);

	return (end - g->logical + full_stripe - 1) / full_stripe * CHUNK_STRIPE_LEN;
}
