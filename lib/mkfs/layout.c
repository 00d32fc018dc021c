// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/layout.h"

#include "lib/format/ids.h"
#include "lib/format/raid.h"
#include "lib/format/super.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* The first of it belongs to boot loaders and the primary superblock. */
#define RESERVED MIB
#define LARGE_DEVICE (50 * GIB)

static uint64_t at_least(uint64_t v, uint64_t min)
{
	return v < min ? min : v;
}

/*
 * The limits of mkfs.btrfs, so that scripts meet the same ones; for mixed groups in two copies it has none of its own.
 */
uint64_t mkfs_layout_min_size(const struct btrkit_mkfs_options *o)
{
	bool metadata_dup = o->metadata == BTRKIT_DUP, data_dup = o->data == BTRKIT_DUP;

	if (o->mixed)
		return metadata_dup ? 165 * MIB : 16 * MIB;
	if (metadata_dup)
		return data_dup ? 229 * MIB : 109 * MIB;
	return data_dup ? 165 * MIB : 45 * MIB;
}

/*
 * As mkfs.btrfs has it: where a tenth of the device is as much as @max, each copy gets that. Otherwise all copies
 * together take a tenth, in whole stripes.
 */
static uint64_t group_length(uint64_t total, unsigned copies, uint64_t max, uint64_t min)
{
	uint64_t share = total / 10 / copies;

	return total / 10 >= max ? max : at_least(share - share % CHUNK_STRIPE_LEN, min);
}

static uint64_t single_length(uint64_t total)
{
	return group_length(total, 1, 8 * MIB, 3 * MIB);
}

static uint64_t metadata_dup_length(uint64_t total)
{
	return group_length(total, 2, total > LARGE_DEVICE ? GIB : 256 * MIB, 32 * MIB);
}

static uint64_t data_dup_length(uint64_t total)
{
	return group_length(total, 2, GIB, 64 * MIB);
}

/* Superblock mirrors lie where they lie, whatever group that is: no block goes to the stripe they take. */
static void find_holes(struct mkfs_group *g)
{
	for (unsigned copy = 0; copy < g->copies; copy++) {
		for (unsigned mirror = 1; mirror < SUPER_MIRRORS; mirror++) {
			uint64_t at = super_offset(mirror);
			unsigned i = g->num_holes;

			if (at < g->physical[copy] || at >= g->physical[copy] + g->length)
				continue;
			at = g->logical + (at - g->physical[copy]) / CHUNK_STRIPE_LEN * CHUNK_STRIPE_LEN;
			for (; i && g->holes[i - 1].start > at; i--)
				g->holes[i] = g->holes[i - 1];
			g->holes[i] = (struct mkfs_range){ at, CHUNK_STRIPE_LEN };
			g->num_holes++;
		}
	}
}

/* Puts a group at the end of what is laid out: @physical is the device's first free byte, and moves on. */
static void add_group(struct mkfs_layout *l, uint64_t type, uint64_t length, uint64_t *logical, uint64_t *physical)
{
	struct mkfs_group *g = &l->groups[l->num_groups++];

	*g = (struct mkfs_group){ .type = type, .logical = *logical, .length = length };
	g->copies = type & BG_DUP ? 2 : 1;
	for (unsigned copy = 0; copy < g->copies; copy++) {
		g->physical[copy] = *physical;
		*physical += length;
	}
	*logical += length;
	find_holes(g);
}

/*
 * Groups lie where those of mkfs.btrfs do: it begins with single ones, of which those that are to have two copies are
 * then made anew behind them. The gaps are of use: with all free space in one piece, Linux gives it to data, and on a
 * small device a balance then runs out of metadata.
 */
void mkfs_layout(const struct btrkit_mkfs_options *o, uint64_t total, struct mkfs_layout *l)
{
	const bool metadata_dup = o->metadata == BTRKIT_DUP, data_dup = o->data == BTRKIT_DUP;
	const struct {
		uint64_t type;
		bool dup;
		uint64_t single_length, dup_length;
	} wanted[] = {
		{ BG_SYSTEM, metadata_dup, 4 * MIB, 8 * MIB },
		{ BG_METADATA | (o->mixed ? BG_DATA : 0), metadata_dup, single_length(total),
		  o->mixed ? data_dup_length(total) : metadata_dup_length(total) },
		{ BG_DATA, data_dup, single_length(total), data_dup_length(total) },
	};
	const unsigned n = o->mixed ? 2 : 3;
	uint64_t logical = RESERVED, physical = RESERVED;

	*l = (struct mkfs_layout){ .total_bytes = total };
	for (unsigned i = 0; i < n; i++) {
		if (!wanted[i].dup) {
			add_group(l, wanted[i].type, wanted[i].single_length, &logical, &physical);
		} else {
			logical += wanted[i].single_length;
			physical += wanted[i].single_length;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (wanted[i].dup)
			add_group(l, wanted[i].type | BG_DUP, wanted[i].dup_length, &logical, &physical);
}

static const struct mkfs_group *group_of_type(const struct mkfs_layout *l, uint64_t type)
{
	const struct mkfs_group *g = l->groups;

	while (!(g->type & type))
		g++;
	return g;
}

const struct mkfs_group *mkfs_metadata_group(const struct mkfs_layout *l)
{
	return group_of_type(l, BG_METADATA);
}

const struct mkfs_group *mkfs_system_group(const struct mkfs_layout *l)
{
	return group_of_type(l, BG_SYSTEM);
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

bool mkfs_group_next_free(const struct mkfs_group *g, uint32_t nodesize, uint64_t used, uint64_t from,
			  struct mkfs_range *ret)
{
	uint64_t start = from < g->logical ? g->logical : from;

	/* A free range begins where a run of blocks ends, and ends where the next begins or the group does. */
	for (uint64_t slot = 0; slot < used; slot++) {
		uint64_t at = mkfs_group_block(g, nodesize, slot);

		if (at + nodesize <= start)
			continue;
		if (at > start) {
			*ret = (struct mkfs_range){ start, at - start };
			return true;
		}
		start = at + nodesize;
	}
	*ret = (struct mkfs_range){ start, g->logical + g->length - start };
	return start < g->logical + g->length;
}
