// SPDX-License-Identifier: LGPL-2.1-or-later
/* Determines which data has checksums. Invalid items are reported by leaf.c. */
#include <inttypes.h>

#include "lib/check/codes.h"
#include "lib/check/data/csums.h"
#include "lib/check/findings.h"
#include "lib/check/log/log_ranges.h"
#include "lib/check/ranges.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/table.h"
#include "lib/format/items/files/csum.h"

struct loading {
	struct check *c;
	uint64_t end; /* of the previous item */
};

static void report_csum(struct check *c, enum check_code code, const struct btrkit_key *key, const char *message)
{
	check_report_at(c, code, &(struct check_location){ OID_CSUM_TREE, 0, key, NULL }, "%s", message);
}

static void take_item(void *ctx, const struct item *item)
{
	struct loading *l = ctx;
	struct check *c = l->c;
	uint64_t start = item->key.offset, end;

	if (item->key.type != KEY_EXTENT_CSUM)
		return;
	end = start + (uint64_t)(item->size / c->items.csum_size) * c->items.sectorsize;
	if (item_validate(&c->items, item, NULL)) {
		c->csums_lost = true;
		return;
	}
	if (end == start) {
		report_csum(c, CHECK_CSUM_EMPTY, &item->key, "checksum item is empty");
		return;
	}
	if (end < start) {
		report_csum(c, CHECK_CSUM_EXTENT, &item->key, "checksum item exceeds the address space");
		return;
	}
	if (start < l->end) {
		report_csum(c, CHECK_CSUM_OVERLAP, &item->key, "checksum item overlaps the previous one");
		start = l->end;
	}
	/* An item within the previous one does not extend the range. */
	if (end <= l->end)
		return;
	check_ranges_add(c, &c->csums, start, end);
	l->end = end;
}

int check_csums(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_CSUM_TREE);
	struct loading l = { .c = c };

	/* roots.c reports a missing tree. */
	if (!root) {
		c->csums_lost = true;
		return 0;
	}
	return check_each_item(c, &root->root, &c->csums_lost, take_item, &l);
}

/* Finds the first range that ends past an address. *hint: where the search starts; updated. */
static size_t range_behind(const struct check *c, uint64_t logical, size_t *hint)
{
	const struct range *ranges = c->csums.at;

	/* It is often the same range as last time, or the next one. */
	for (size_t i = *hint; i < c->csums.n && i < *hint + 2; i++)
		if (range_end(&ranges[i]) > logical && (!i || range_end(&ranges[i - 1]) <= logical))
			return *hint = i;
	return *hint = check_ranges_behind(&c->csums, logical);
}

uint64_t check_csum_bytes(const struct check *c, uint64_t logical, uint64_t length, size_t *hint)
{
	const struct range *ranges = c->csums.at;
	const uint64_t end = logical + length < logical ? UINT64_MAX : logical + length;
	uint64_t bytes = 0;

	for (size_t i = range_behind(c, logical, hint); i < c->csums.n && ranges[i].start < end; i++) {
		const uint64_t from = ranges[i].start > logical ? ranges[i].start : logical;
		const uint64_t to = range_end(&ranges[i]) < end ? range_end(&ranges[i]) : end;

		bytes += to - from;
	}
	return bytes;
}

/* Reports parts of a range with checksums that are not in any data extent. */
static void check_range(struct check *c, const struct range *range, size_t *hint)
{
	uint64_t pos = range->start;

	while (pos < range_end(range)) {
		const struct check_extent *e = check_find_extent(&c->tables, pos, c->items.sectorsize, hint);
		uint64_t end = range_end(range);

		if (e) {
			const uint64_t behind = check_extent_start(e) + (uint64_t)e->sectors * c->items.sectorsize;

			/* An invalid extent may have a length of 0. */
			pos = behind > pos ? behind : pos + c->items.sectorsize;
			continue;
		}
		const size_t next = check_table_lower_bound(&c->tables.extents, pos, hint);

		if (next < c->tables.extents.n && check_extent_start(check_extent_at(&c->tables, next)) < end)
			end = check_extent_start(check_extent_at(&c->tables, next));
		/* When Linux replays the log, it would use these checksums for the log's data. */
		if (check_log_data(c, pos, &end)) {
			pos = end;
			continue;
		}
		check_report_at(c, CHECK_CSUM_EXTENT, &(struct check_location){ OID_CSUM_TREE, pos, NULL, NULL },
				"%" PRIu64 " bytes have checksums, but are not in a data extent", end - pos);
		pos = end;
	}
}

/* Reports extents with several references that have checksums for preallocated space, but no written data. */
static void check_prealloc(struct check *c)
{
	for (size_t i = 0; !c->blocks_lost && i < c->tables.extents.n; i++) {
		const struct check_extent *e = check_extent_at(&c->tables, i);

		if (e->tagged & CHECK_EXTENT_PREALLOC_CSUM && !(e->tagged & (CHECK_EXTENT_KINDS | CHECK_EXTENT_DOUBT)))
			check_report_at(c, CHECK_FILE_CSUM_PREALLOC,
					&(struct check_location){ OID_CSUM_TREE, check_extent_start(e), NULL, NULL },
					"preallocated extent has checksums");
	}
}

int check_csum_extents(struct check *c)
{
	const struct range *ranges = c->csums.at;
	size_t hint = 0;

	for (size_t i = 0; !c->extents_lost && i < c->csums.n && !check_failed(c); i++)
		check_range(c, &ranges[i], &hint);
	if (!c->extents_lost && !check_failed(c))
		check_prealloc(c);
	return c->failed;
}
