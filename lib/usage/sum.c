// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sums: each extent and block is added to its set, and each set to its owners. */
#include <stdlib.h>

#include "lib/backref/shared.h"
#include "lib/base/err.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/sum.h"
#include "lib/usage/table.h"
#include "lib/usage/work.h"

void usage_space_add(struct btrkit_usage_space *to, const struct btrkit_usage_space *more)
{
	to->data += more->data;
	to->uncompressed += more->uncompressed;
	to->metadata += more->metadata;
	to->extents += more->extents;
	to->blocks += more->blocks;
}

void usage_extent_describe(const struct btrkit_usage *u, const struct usage_extent *e, struct btrkit_usage_extent *ret)
{
	const uint32_t info = atomic_load_explicit(&e->info, memory_order_relaxed);
	const uint64_t uncompressed = info >> USAGE_UNCOMPRESSED_SHIFT;
	const uint32_t set = atomic_load_explicit(&e->set, memory_order_relaxed);

	*ret = (struct btrkit_usage_extent){
		.bytenr = e->start,
		.bytes = (uint64_t)e->sectors * u->sectorsize,
		.uncompressed = (uncompressed ? uncompressed : e->sectors) * u->sectorsize,
		.type = BTRKIT_USAGE_PLAIN + ((info & USAGE_COMPRESSION) >> USAGE_COMPRESSION_SHIFT),
		.set = set ? set - 1 : SIZE_MAX,
		.linux_shared = shared_extent(info & USAGE_REFS_DIFFER, info & USAGE_IN_SHARED_LEAF),
	};
	if (info & USAGE_PREALLOC && !(info & USAGE_WRITTEN))
		ret->type = BTRKIT_USAGE_PREALLOC;
}

static void add_extents(struct usage_work *w, struct btrkit_usage_space *sums)
{
	struct btrkit_usage *u = w->u;

	for (size_t i = 0; i < u->extents.n; i++) {
		const struct usage_extent *e = usage_extents_at(&u->extents, i);
		const uint32_t set = atomic_load_explicit(&e->set, memory_order_relaxed);
		struct btrkit_usage_extent x;
		struct btrkit_usage_stored *stored;

		usage_extent_describe(u, e, &x);
		sums[set].data += x.bytes;
		sums[set].uncompressed += x.uncompressed;
		sums[set].extents++;
		if (!u->sets.at[set].weight)
			continue;
		stored = &u->types.extents[x.type];
		stored->extents++;
		stored->disk += x.bytes;
		stored->uncompressed += x.uncompressed;
	}
}

static void add_blocks(struct usage_work *w, struct btrkit_usage_space *sums)
{
	struct btrkit_usage *u = w->u;

	for (size_t i = 0; i < u->blocks.n; i++) {
		const uint32_t set = atomic_load_explicit(&usage_blocks_at(&u->blocks, i)->set, memory_order_relaxed);

		sums[set].metadata += u->nodesize;
		sums[set].blocks++;
	}
}

static int compare_final(const void *a, const void *b, void *ctx)
{
	const struct set *sets = ctx;
	const struct usage_final_set *x = a, *y = b;

	return set_compare(&sets[x->number], &sets[y->number]);
}

/* Keeps the sets that occur, sorted by their members. */
static int store_sets(struct usage_work *w, const struct btrkit_usage_space *sums, struct btrkit_error *err)
{
	struct btrkit_usage *u = w->u;
	size_t n = 0;

	for (uint32_t i = 1; i < u->sets.n; i++)
		n += sums[i].extents || sums[i].blocks;
	u->final = calloc(n + !n, sizeof(*u->final));
	if (!u->final)
		return err_nomem(err);
	for (uint32_t i = 1; i < u->sets.n; i++)
		if (sums[i].extents || sums[i].blocks)
			u->final[u->num_final++] = (struct usage_final_set){ i, sums[i] };
	qsort_r(u->final, n, sizeof(*u->final), compare_final, u->sets.at);
	return 0;
}

/* Replaces set numbers by those of the kept sets. */
static int renumber(struct btrkit_usage *u, struct btrkit_error *err)
{
	uint32_t *to = calloc(u->sets.n, sizeof(*to));

	if (!to)
		return err_nomem(err);
	for (size_t i = 0; i < u->num_final; i++)
		to[u->final[i].number] = (uint32_t)i + 1;
	for (size_t i = 0; i < u->extents.n; i++) {
		atomic_uint *set = &usage_extents_at(&u->extents, i)->set;

		atomic_store_explicit(set, to[atomic_load_explicit(set, memory_order_relaxed)], memory_order_relaxed);
	}
	for (size_t i = 0; i < u->blocks.n; i++) {
		atomic_uint *set = &usage_blocks_at(&u->blocks, i)->set;

		atomic_store_explicit(set, to[atomic_load_explicit(set, memory_order_relaxed)], memory_order_relaxed);
	}
	free(to);
	return 0;
}

static void space_subtract(struct btrkit_usage_space *from, const struct btrkit_usage_space *less)
{
	from->data -= less->data;
	from->uncompressed -= less->uncompressed;
	from->metadata -= less->metadata;
	from->extents -= less->extents;
	from->blocks -= less->blocks;
}

/* Adds the space of each set to its owners. Runs are added as differences, which are then summed up. */
static int add_to_owners(struct usage_work *w, struct btrkit_error *err)
{
	struct btrkit_usage *u = w->u;
	struct btrkit_usage_space *more = calloc(u->num_owners + 1, sizeof(*more)), sum = { 0 };
	uint64_t orphans = 0;

	if (!more)
		return err_nomem(err);
	for (size_t i = 0; i < u->num_final; i++) {
		const struct set *set = &u->sets.at[u->final[i].number];

		for (uint32_t run = 0; run < set->num_runs; run++) {
			usage_space_add(&more[set->runs[run].first], &u->final[i].space);
			space_subtract(&more[set->runs[run].last + 1], &u->final[i].space);
		}
		if (set->num_runs == 1 && set->runs[0].first == set->runs[0].last)
			u->owners[u->outside[set->runs[0].first]].exclusive = u->final[i].space;
	}
	for (size_t i = 0; i < u->num_owners; i++) {
		usage_space_add(&sum, &more[i]);
		orphans += w->orphans[i];
		u->owners[u->outside[i]].referenced = sum;
		u->owners[u->outside[i]].orphans = orphans;
	}
	free(more);
	return 0;
}

int usage_sum(struct usage_work *w, struct btrkit_error *err)
{
	struct btrkit_usage *u = w->u;
	struct btrkit_usage_space *sums = calloc(u->sets.n, sizeof(*sums));
	int ret;

	if (!sums)
		return err_nomem(err);
	add_extents(w, sums);
	add_blocks(w, sums);
	u->total.unowned = sums[0];
	for (uint32_t i = 0; i < u->sets.n; i++)
		usage_space_add(&u->total.space, &sums[i]);
	ret = store_sets(w, sums, err);
	free(sums);
	if (!ret)
		ret = renumber(u, err);
	if (!ret)
		ret = add_to_owners(w, err);
	u->total.sets = u->num_final;
	u->total.set_bytes = u->sets.bytes;
	if (!ret && w->done < w->due)
		ret = usage_progress(w, w->due - w->done, err);
	return ret;
}
