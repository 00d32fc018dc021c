// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries of the result. */
#include <errno.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/usage/damage.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/query.h"
#include "lib/usage/state.h"
#include "lib/usage/sum.h"
#include "lib/usage/table.h"

size_t btrkit_usage_num_owners(const struct btrkit_usage *u)
{
	return u->num_owners;
}

void btrkit_usage_get_owner(const struct btrkit_usage *u, size_t i, struct btrkit_usage_owner *ret)
{
	*ret = u->owners[i];
}

static size_t find_owner(const struct btrkit_usage *u, enum btrkit_usage_kind kind, uint64_t id)
{
	size_t low = 0, high = u->num_owners;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const struct btrkit_usage_owner *o = &u->owners[mid];

		if (o->kind < kind || (o->kind == kind && o->id < id))
			low = mid + 1;
		else
			high = mid;
	}
	return low < u->num_owners && u->owners[low].kind == kind && u->owners[low].id == id ? low : SIZE_MAX;
}

int btrkit_usage_find(const struct btrkit_usage *u, uint64_t id, size_t *ret)
{
	size_t i = find_owner(u, BTRKIT_USAGE_SUBVOLUME, id);

	if (i == SIZE_MAX)
		i = find_owner(u, BTRKIT_USAGE_DROPPED, id);
	if (i == SIZE_MAX)
		return -ENOENT;
	*ret = i;
	return 0;
}

void btrkit_usage_get_total(const struct btrkit_usage *u, struct btrkit_usage_total *ret)
{
	*ret = u->total;
}

void btrkit_usage_get_types(const struct btrkit_usage *u, struct btrkit_usage_types *ret)
{
	*ret = u->types;
}

size_t btrkit_usage_num_sets(const struct btrkit_usage *u)
{
	return u->num_final;
}

const struct set *usage_set_at(const struct btrkit_usage *u, size_t i)
{
	return &u->sets.at[u->final[i].number];
}

size_t btrkit_usage_in_order(const struct btrkit_usage *u, size_t i)
{
	return u->outside[i];
}

size_t btrkit_usage_get_runs(const struct btrkit_usage *u, size_t set, struct btrkit_usage_run *runs, size_t max)
{
	const struct set *s = usage_set_at(u, set);

	for (uint32_t i = 0; i < s->num_runs && i < max; i++)
		runs[i] = (struct btrkit_usage_run){ s->runs[i].first, s->runs[i].last };
	return s->num_runs;
}

bool btrkit_usage_was_reported(const struct btrkit_usage *u, const struct btrkit_error *what)
{
	return usage_was_reported(u, what);
}

static size_t count_owners(const struct set *set)
{
	size_t n = 0;

	for (uint32_t run = 0; run < set->num_runs; run++)
		n += set->runs[run].last - set->runs[run].first + 1;
	return n;
}

static bool has_owner(const struct set *set, uint32_t owner)
{
	uint32_t low = 0, high = set->num_runs;

	/* Find the first run that does not end before the owner. */
	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;

		if (set->runs[mid].last < owner)
			low = mid + 1;
		else
			high = mid;
	}
	return low < set->num_runs && set->runs[low].first <= owner;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void list_owners(const struct btrkit_usage *u, const struct set *set, uint32_t *owners)
{
	size_t n = 0;

	for (uint32_t run = 0; run < set->num_runs; run++)
		for (uint32_t i = set->runs[run].first; i <= set->runs[run].last; i++)
			owners[n++] = u->outside[i];
	qsort(owners, n, sizeof(*owners), compare_numbers);
}

void btrkit_usage_get_set(const struct btrkit_usage *u, size_t i, struct btrkit_usage_set *ret, uint32_t *owners,
			  size_t max)
{
	const struct set *set = usage_set_at(u, i);
	size_t n = 0;

	*ret = (struct btrkit_usage_set){ u->final[i].space, count_owners(set) };
	if (max >= ret->num_owners) {
		list_owners(u, set, owners);
		return;
	}
	for (uint32_t owner = 0; n < max && owner < u->num_owners; owner++)
		if (has_owner(set, u->inside[owner]))
			owners[n++] = owner;
}

/* Returns whether all owners of the set are selected. @before[i]: number of selected owners below i */
static bool is_subset(const struct set *set, const uint32_t *before)
{
	for (uint32_t i = 0; i < set->num_runs; i++) {
		const struct set_run *run = &set->runs[i];

		if (before[run->last + 1] - before[run->first] != run->last - run->first + 1)
			return false;
	}
	return true;
}

int btrkit_usage_freed(const struct btrkit_usage *u, const uint32_t *owners, size_t n, struct btrkit_usage_space *ret,
		       struct btrkit_error *err)
{
	struct btrkit_usage_space sum = { 0 };
	uint32_t *before;

	for (size_t i = 0; i < n; i++)
		if (owners[i] >= u->num_owners)
			return err_set(err, BTRKIT_INVALID, "no owner %u", (unsigned)owners[i]);
	before = calloc(u->num_owners + 1, sizeof(*before));
	if (!before)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++)
		before[u->inside[owners[i]] + 1] = 1;
	for (size_t i = 0; i < u->num_owners; i++)
		before[i + 1] += before[i];
	for (size_t i = 0; i < u->num_final; i++)
		if (is_subset(usage_set_at(u, i), before))
			usage_space_add(&sum, &u->final[i].space);
	free(before);
	*ret = sum;
	return 0;
}

/* Adds space to all pairs of owners of two runs: only at the corners of the rectangle; sum_up() fills it. */
static void add_rectangle(struct btrkit_usage_space *m, size_t n, const struct set_run *rows,
			  const struct set_run *columns, const struct btrkit_usage_space *space)
{
	struct btrkit_usage_space minus = { -space->data, -space->uncompressed, -space->metadata, -space->extents,
					    -space->blocks };

	usage_space_add(&m[rows->first * n + columns->first], space);
	if (rows->last + 1 < n)
		usage_space_add(&m[(rows->last + 1) * n + columns->first], &minus);
	if (columns->last + 1 < n)
		usage_space_add(&m[rows->first * n + columns->last + 1], &minus);
	if (rows->last + 1 < n && columns->last + 1 < n)
		usage_space_add(&m[(rows->last + 1) * n + columns->last + 1], space);
}

static void sum_up(struct btrkit_usage_space *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 1; j < n; j++)
			usage_space_add(&m[i * n + j], &m[i * n + j - 1]);
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < n; j++)
			usage_space_add(&m[i * n + j], &m[(i - 1) * n + j]);
}

int btrkit_usage_matrix(const struct btrkit_usage *u, struct btrkit_usage_space *ret, struct btrkit_error *err)
{
	const size_t n = u->num_owners;
	struct btrkit_usage_space *inner = n > SIZE_MAX / n / sizeof(*inner) ? NULL : calloc(n * n, sizeof(*inner));

	if (!inner)
		return err_nomem(err);
	for (size_t i = 0; i < u->num_final; i++) {
		const struct set *set = usage_set_at(u, i);

		for (uint32_t r = 0; r < set->num_runs; r++)
			for (uint32_t c = 0; c < set->num_runs; c++)
				add_rectangle(inner, n, &set->runs[r], &set->runs[c], &u->final[i].space);
	}
	sum_up(inner, n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			ret[i * n + j] = inner[u->inside[i] * n + u->inside[j]];
	free(inner);
	return 0;
}

size_t btrkit_usage_num_extents(const struct btrkit_usage *u)
{
	return u->extents.n;
}

void btrkit_usage_get_extent(const struct btrkit_usage *u, size_t i, struct btrkit_usage_extent *ret)
{
	usage_extent_describe(u, usage_extents_at(&u->extents, i), ret);
}

size_t btrkit_usage_num_blocks(const struct btrkit_usage *u)
{
	return u->blocks.n;
}

void btrkit_usage_get_block(const struct btrkit_usage *u, size_t i, struct btrkit_usage_block *ret)
{
	const struct usage_block *b = usage_blocks_at(&u->blocks, i);
	const uint32_t set = atomic_load_explicit(&b->set, memory_order_relaxed);

	*ret = (struct btrkit_usage_block){ usage_table_address(&u->blocks, sizeof(*b), i),
					    (uint8_t)usage_block_level(b), set ? set - 1 : SIZE_MAX };
}
