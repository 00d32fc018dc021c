// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/dump/dump_tree_pick.h"

#include "lib/format/disk.h"

/* Index of the first range that does not end before @key; num_ranges if there is none. */
static size_t range_from(const struct dump_pick *p, const struct btrkit_key *key)
{
	size_t low = 0, high = p->num_ranges;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (key_cmp(&p->ranges[mid].max, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool has_data(const struct dump_pick *p, uint64_t start, uint64_t end)
{
	size_t low = 0, high = p->num_data;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (p->data[mid].end <= start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->num_data && p->data[low].start < end;
}

bool dump_pick_item(const struct dump_pick *p, const struct item *item)
{
	size_t i;

	if (!dump_pick_type(p, item->key.type))
		return false;
	i = range_from(p, &item->key);
	if (i == p->num_ranges || key_cmp(&p->ranges[i].min, &item->key) > 0)
		return false;
	if (!p->num_data || item->key.type != KEY_EXTENT_CSUM)
		return true;
	return has_data(p, item->key.offset,
			item->key.offset + (uint64_t)item->size / p->csum_size * p->sectorsize);
}

/* Whether any type from @from to @to is selected. */
static bool any_type(const struct dump_pick *p, unsigned from, unsigned to)
{
	for (unsigned type = from; type <= to; type++)
		if (dump_pick_type(p, (uint8_t)type))
			return true;
	return false;
}

/* Whether keys from @min up to (not including) @end may have selected types. */
static bool types_overlap(const struct dump_pick *p, const struct btrkit_key *min, const struct btrkit_key *end)
{
	int last;

	if (!end || end->objectid - min->objectid > 1)
		return any_type(p, 0, UINT8_MAX);
	last = end->type - !end->offset;
	if (end->objectid == min->objectid)
		return last >= 0 && any_type(p, min->type, (unsigned)last);
	return any_type(p, min->type, UINT8_MAX) || (last >= 0 && any_type(p, 0, (unsigned)last));
}

bool dump_pick_overlaps(const struct dump_pick *p, const struct btrkit_key *min, const struct btrkit_key *end)
{
	const size_t i = range_from(p, min);

	if (i == p->num_ranges || (end && key_cmp(&p->ranges[i].min, end) >= 0))
		return false;
	return types_overlap(p, min, end);
}
