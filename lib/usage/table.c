// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/usage/table.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/sweep/entries.h"

static int resize(struct usage_table *t, size_t entry, size_t room, struct btrkit_error *err)
{
	/* Large arrays are moved by remapping pages, not by copying, so memory is not needed twice. */
	void *at = reallocarray(t->at, room, entry);

	if (!at)
		return err_nomem(err);
	t->at = at;
	t->room = room;
	return 0;
}

int usage_table_reserve(struct usage_table *t, size_t entry, size_t more, struct btrkit_error *err)
{
	size_t room = t->room + t->room / 2 + 1024;

	if (more > USAGE_TABLE_MAX - t->n)
		return err_nomem(err);
	if (t->room - t->n >= more)
		return 0;
	if (room < t->n + more)
		room = t->n + more;
	return resize(t, entry, room, err);
}

int usage_table_settle(struct usage_table *t, size_t entry, struct btrkit_error *err)
{
	const size_t steps = (t->n + USAGE_INDEX_STEP - 1) / USAGE_INDEX_STEP;
	uint64_t *index;
	int ret = 0;

	if (t->room > t->n + t->n / 64 && t->n)
		ret = resize(t, entry, t->n, err);
	index = ret ? NULL : reallocarray(t->index, steps + 1, sizeof(*index));
	if (!index)
		return err_nomem(err);
	t->index = index;
	for (size_t i = 0; i < steps; i++)
		index[i] = usage_table_address(t, entry, i * USAGE_INDEX_STEP);
	return 0;
}

int usage_table_merge(struct usage_table *t, size_t entry, const void *more, size_t n, struct btrkit_error *err)
{
	int ret = usage_table_reserve(t, entry, n, err);

	if (ret)
		return ret;
	sweep_entries_merge(t->at, t->n, entry, more, n);
	t->n += n;
	return usage_table_settle(t, entry, err);
}

/*
 * Does one step of all binary searches, and prefetches what each accesses next. Nothing depends on the outcome but
 * data, because a branch would be mispredicted half of the time. @return the remaining length of each range
 */
static size_t step_index(const struct usage_table *t, const uint64_t *addresses, size_t n, size_t *low, size_t len)
{
	const size_t half = len / 2, next = (len - half) / 2;
	const uint64_t *index = t->index;

	for (size_t i = 0; i < n; i++) {
		low[i] += half & -(size_t)(index[low[i] + half] <= addresses[i]);
		__builtin_prefetch(&index[low[i] + next]);
	}
	return len - half;
}

static size_t step_entries(const struct usage_table *t, size_t entry, const uint64_t *addresses, size_t n, size_t *low,
			   size_t len)
{
	const size_t half = len / 2, next = (len - half) / 2, last = t->n - 1;
	const struct usage_table in = *t;

	for (size_t i = 0; i < n; i++) {
		/* The last range may be shorter. */
		const size_t mid = low[i] + half < last ? low[i] + half : last;
		size_t ahead;

		low[i] += (mid - low[i]) & -(size_t)(usage_table_address(&in, entry, mid) <= addresses[i]);
		ahead = low[i] + next < last ? low[i] + next : last;
		__builtin_prefetch((const uint8_t *)in.at + ahead * entry);
	}
	return len - half;
}

void usage_table_find_many(const struct usage_table *t, size_t entry, const uint64_t *addresses, size_t n, size_t *ret)
{
	size_t len = (t->n + USAGE_INDEX_STEP - 1) / USAGE_INDEX_STEP;

	for (size_t i = 0; i < n; i++)
		ret[i] = t->n ? 0 : SIZE_MAX;
	if (!t->n)
		return;
	while (len > 1)
		len = step_index(t, addresses, n, ret, len);
	for (size_t i = 0; i < n; i++)
		ret[i] *= USAGE_INDEX_STEP;
	for (len = USAGE_INDEX_STEP; len > 1;)
		len = step_entries(t, entry, addresses, n, ret, len);
	for (size_t i = 0; i < n; i++)
		if (usage_table_address(t, entry, ret[i]) != addresses[i])
			ret[i] = SIZE_MAX;
}

void usage_table_release(struct usage_table *t)
{
	free(t->at);
	free(t->index);
	*t = (struct usage_table){ 0 };
}

uint32_t usage_digest(const struct disk_key *key)
{
	uint64_t h = le64_get(key->objectid) * 0x9e3779b97f4a7c15u;

	h = (h ^ h >> 32 ^ key->type) * 0xff51afd7ed558ccdu;
	h = (h ^ h >> 32 ^ le64_get(key->offset)) * 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(h >> 40) % USAGE_DIGEST_MAX + 1;
}
