// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/mkfs/filled/lane.h"
#include "lib/mkfs/parallel.h"
#include "lib/volume/parity.h"

#define BATCH_BYTES (16u << 20)	/* for all devices together */
#define BATCH_MIN (512u << 10)

struct mkfs_writer {
	const struct mkfs_plan *plan;
	struct mkfs_lane **lanes; /* per device */
	/*
	 * All used full stripes of each group with parity, which are written in full; and buffers for P and Q of one
	 * full stripe.
	 */
	uint8_t **full_stripes;
	uint8_t *parity[2];
	const struct mkfs_tree *tree; /* being written */
	const struct mkfs_group *group; /* group of the current block */
};

/* Returns the bytes of data in all used full stripes of a group; 0 if it has no parity. */
static size_t rows_size(const struct mkfs_plan *p, const struct mkfs_group *g)
{
	if (!raid_profile_find(g->shape.type)->parity)
		return 0;
	return (size_t)mkfs_group_extent_taken(p, g) * raid_data_stripes(&g->shape);
}

static int take_memory(struct mkfs_writer *w, struct btrkit_error *err)
{
	const struct mkfs_plan *p = w->plan;
	const size_t budget = BATCH_BYTES / p->num_devices;
	int ret = 0;

	w->lanes = calloc(p->num_devices, sizeof(struct mkfs_lane *));
	w->full_stripes = calloc(p->layout.num_groups, sizeof(*w->full_stripes));
	w->parity[0] = malloc(2 * CHUNK_STRIPE_LEN);
	if (!w->lanes || !w->full_stripes || !w->parity[0])
		return err_nomem(err);
	w->parity[1] = w->parity[0] + CHUNK_STRIPE_LEN;
	for (unsigned d = 0; !ret && d < p->num_devices; d++)
		ret = mkfs_lane_create(p->devices[d].io, budget < BATCH_MIN ? BATCH_MIN : budget, &w->lanes[d], err);
	for (unsigned i = 0; !ret && i < p->layout.num_groups; i++) {
		const size_t size = rows_size(p, &p->layout.groups[i]);

		w->full_stripes[i] = size ? calloc(1, size) : NULL;
		if (size && !w->full_stripes[i])
			ret = err_nomem(err);
	}
	return ret;
}

int mkfs_writer_create(const struct mkfs_plan *p, struct mkfs_writer **ret, struct btrkit_error *err)
{
	struct mkfs_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_nomem(err);
	w->plan = p;
	r = take_memory(w, err);
	if (r)
		mkfs_writer_destroy(w);
	else
		*ret = w;
	return r;
}

struct mkfs_writer *mkfs_writer_destroy(struct mkfs_writer *w)
{
	if (!w)
		return NULL;
	for (unsigned d = 0; w->lanes && d < w->plan->num_devices; d++)
		mkfs_lane_destroy(w->lanes[d]);
	for (unsigned i = 0; w->full_stripes && i < w->plan->layout.num_groups; i++)
		free(w->full_stripes[i]);
	free(w->full_stripes);
	free(w->parity[0]);
	free(w->lanes);
	free(w);
	return NULL;
}

static int place_block(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	struct mkfs_writer *w = ctx;

	if (index >= w->tree->blocks[level])
		return err_set(err, BTRKIT_NO_SPACE, "tree %" PRIu64 " is larger than planned", w->tree->owner);
	*bytenr = mkfs_slot_address(w->plan, w->tree->role, mkfs_tree_slot(w->tree, level, index), &w->group);
	return 0;
}

/* A block never crosses a strip: both sizes are powers of two, and the block is not larger. */
static int write_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	struct mkfs_writer *w = ctx;
	const struct mkfs_group *g = w->group;
	const uint32_t nodesize = w->plan->opts.nodesize;
	const uint64_t offset = bytenr - g->logical;
	uint8_t *full_stripes = w->full_stripes[g - w->plan->layout.groups];
	int ret = 0;

	if (full_stripes) {
		memcpy(full_stripes + offset, block, nodesize);
		return 0;
	}
	for (unsigned copy = 0; !ret && copy < raid_copies(&g->shape); copy++) {
		const struct raid_place place = raid_map(&g->shape, offset, copy);
		const struct mkfs_stripe *s = &g->stripes[place.stripe];

		ret = mkfs_lane_write(w->lanes[s->device], s->physical + place.offset, block, nodesize, err);
	}
	return ret;
}

static int write_tree(struct mkfs_writer *w, struct btrkit_error *err)
{
	const struct mkfs_plan *p = w->plan;
	const struct bulk_config config = {
		.rules = &p->rules,
		.items = &p->items,
		.chunk_tree_uuid = p->chunk_tree_uuid,
		.owner = w->tree->owner,
		.generation = p->generation,
		.place = place_block,
		.write = write_block,
		.ctx = w,
	};
	struct tree_root root;
	int ret;

	ret = mkfs_tree_run(p, w->tree, &config, &root, NULL, err);
	if (!ret && (root.bytenr != mkfs_tree_root(p, w->tree) || root.level != mkfs_tree_level(w->tree)))
		ret = err_set(err, BTRKIT_INVALID, "tree %" PRIu64 " is not as planned", w->tree->owner);
	return ret;
}

/*
 * Writes all strips of a full stripe and its parity. Unused strips are written as zeros, because the parity covers
 * them.
 */
static int write_row(struct mkfs_writer *w, const struct mkfs_group *g, uint8_t *full_stripes, uint64_t full_stripe,
		     struct btrkit_error *err)
{
	const unsigned data = raid_data_stripes(&g->shape), all = g->shape.num_stripes;
	uint8_t *strips[PARITY_STRIPS_MAX + 2];
	int ret;

	for (unsigned i = 0; i < all; i++)
		strips[i] = i < data ? full_stripes + (full_stripe * data + i) * CHUNK_STRIPE_LEN : w->parity[i - data];
	ret = parity_generate(data, CHUNK_STRIPE_LEN, strips, w->parity[0], all > data + 1 ? w->parity[1] : NULL, err);
	for (unsigned i = 0; !ret && i < all; i++) {
		const struct mkfs_stripe *s = &g->stripes[raid_strip_stripe(&g->shape, full_stripe, i)];

		ret = mkfs_lane_write(w->lanes[s->device], s->physical + full_stripe * CHUNK_STRIPE_LEN, strips[i],
				      CHUNK_STRIPE_LEN, err);
	}
	return ret;
}

static bool is_hole(const struct mkfs_group *g, uint64_t logical)
{
	for (unsigned i = 0; i < g->num_holes; i++)
		if (g->holes[i].start == logical)
			return true;
	return false;
}

static int write_rows(struct mkfs_writer *w, const struct mkfs_group *g, uint8_t *full_stripes,
		      struct btrkit_error *err)
{
	const uint64_t row_length = (uint64_t)CHUNK_STRIPE_LEN * raid_data_stripes(&g->shape);
	const uint64_t n = mkfs_group_extent_taken(w->plan, g) / CHUNK_STRIPE_LEN;
	int ret = 0;

	for (uint64_t full_stripe = 0; !ret && full_stripe < n; full_stripe++)
		if (!is_hole(g, g->logical + full_stripe * row_length))
			ret = write_row(w, g, full_stripes, full_stripe, err);
	return ret;
}

static int finish_device(const struct mkfs_plan *p, unsigned device, void *ctx, struct btrkit_error *err)
{
	const struct mkfs_writer *w = ctx;
	int ret = mkfs_lane_finish(w->lanes[device], err);

	return ret ? ret : btrkit_io_flush(p->devices[device].io, err);
}

int mkfs_write_trees(struct mkfs_writer *w, struct btrkit_error *err)
{
	const struct mkfs_layout *l = &w->plan->layout;
	int ret = 0;

	for (unsigned i = 0; !ret && i < w->plan->num_trees; i++) {
		w->tree = &w->plan->trees[i];
		ret = write_tree(w, err);
	}
	for (unsigned i = 0; !ret && i < l->num_groups; i++)
		if (w->full_stripes[i])
			ret = write_rows(w, &l->groups[i], w->full_stripes[i], err);
	return ret ? ret : mkfs_on_devices(w->plan, &(struct mkfs_job){ .work = finish_device, .ctx = w }, err);
}
