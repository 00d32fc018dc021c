// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the data that log trees refer to: its location, and whether it has checksums. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/data/compressed.h"
#include "lib/check/data/csums.h"
#include "lib/check/files/extent_fields.h"
#include "lib/check/findings.h"
#include "lib/check/log/log_data.h"
#include "lib/check/log/log_state.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"
#include "lib/check/volume/groups.h"
#include "lib/format/items/files/csum.h"
#include "lib/format/items/files/inode.h"
#include "lib/sweep/log.h"

static bool is_known(struct log *l, const struct file_extent *fe)
{
	const struct check_extent *e = check_find_extent(&l->c->tables, fe->disk_bytenr, l->c->items.sectorsize,
							 &l->hints.extent);

	return e && check_extent_start(e) == fe->disk_bytenr &&
	       (uint64_t)e->sectors * l->c->items.sectorsize == fe->disk_num_bytes;
}

/*
 * Data must either be in an extent of the extent tree (*known is true then), or in space that is free without the log.
 * @return whether it is one of the two
 */
static bool check_location(struct log *l, uint64_t logical, const struct item *item, const struct file_extent *fe,
			   bool *known)
{
	const struct check_group *g = check_group_of(l->c, fe->disk_bytenr, &l->group_hint);
	const char *words = NULL;

	*known = l->c->extents_lost || is_known(l, fe);
	if (*known)
		return true;
	if (!g || !(g->flags & BG_DATA) || !fe->disk_num_bytes ||
	    fe->disk_num_bytes > g->start + g->length - fe->disk_bytenr)
		words = "data extent in a log tree is not in a data block group";
	else if (log_is_used(l, fe->disk_bytenr, fe->disk_num_bytes))
		words = "data extent in a log tree overlaps an extent in the extent tree";
	if (words)
		log_report(l, CHECK_LOG_EXTENT, logical, &item->key, "disk_bytenr", words);
	return !words;
}

/* Records data that only the log knows. Successive file extents often refer to the same extent. */
static void add_data(struct log *l, const struct file_extent *fe)
{
	struct array *data = &l->c->log_data;
	struct range *to = data->n ? (struct range *)data->at + data->n - 1 : NULL;

	if (to && to->start == fe->disk_bytenr && to->length == fe->disk_num_bytes)
		return;
	to = check_list_add(l->c, data, sizeof(*to));
	if (to)
		*to = (struct range){ fe->disk_bytenr, fe->disk_num_bytes };
}

/* Unless the inode has NODATASUM, Linux cannot read data without checksums. */
static void want_sums(struct log *l, uint64_t logical, const struct item *item, const struct file_extent *fe)
{
	const uint64_t start = fe->compression ? fe->disk_bytenr : fe->disk_bytenr + fe->offset;
	const uint64_t length = fe->compression ? fe->disk_num_bytes : fe->num_bytes;
	const bool none = l->inode.flags & INODE_NODATASUM;
	struct log_wanted *to;

	if (!l->inode.item || l->inode.doubt || fe->type != FILE_EXTENT_REG || l->c->csums_lost ||
	    start + length < start)
		return;
	/* All checksums are committed; the log cannot remove any. */
	if (!none && check_csum_bytes(l->c, start, length, &l->hints.csum) == length)
		return;
	to = check_list_add(l->c, &l->wanted, sizeof(*to));
	if (to)
		*to = (struct log_wanted){ { start, length }, item->key.objectid, item->key.offset, logical, none };
}

static void check_regular(struct log *l, const struct node *leaf, const struct item *item, const struct file_extent *fe)
{
	bool known;

	if (!fe->disk_bytenr || !check_location(l, leaf->bytenr, item, fe, &known))
		return;
	if (!known) {
		add_data(l, fe);
		if (fe->compression && l->c->opts.flags & BTRKIT_CHECK_DATA)
			check_compressed_extent(l->c, leaf, item, fe, &(struct check_extent){ .refs = 1 });
	}
	want_sums(l, leaf->bytenr, item, fe);
}

/* Linux refuses leaves with overlapping file extents. */
static void check_overlap(struct log *l, const struct node *leaf, const struct item *item, const struct file_extent *fe)
{
	const uint64_t sector = l->c->items.sectorsize, begin = item->key.offset;
	const uint64_t length = fe->type == FILE_EXTENT_INLINE ? (fe->ram_bytes + sector - 1) & ~(sector - 1) :
								 fe->num_bytes;

	if (begin < l->inode.end)
		log_report(l, CHECK_FILE_OVERLAP, leaf->bytenr, &item->key, "key.offset",
			   "file extent in a log tree overlaps a previous one");
	if (begin + length > l->inode.end)
		l->inode.end = begin + length;
}

int log_data_extent(void *ctx, const struct sweep_log_item *at, const struct file_extent *fe, struct btrkit_error *err)
{
	struct log *l = ctx;

	(void)err;
	check_extent_fields(l->c, at->leaf, at->item, fe);
	check_overlap(l, at->leaf, at->item, fe);
	if (fe->type != FILE_EXTENT_INLINE)
		check_regular(l, at->leaf, at->item, fe);
	else if (fe->compression && l->c->opts.flags & BTRKIT_CHECK_DATA)
		check_compressed_inline(l->c, at->leaf, at->item, fe);
	return 0;
}

static uint64_t sums_end(const struct check_log_sum *s)
{
	return s->start + s->length;
}

/* Returns the first of the tree's own checksums that end past an address. */
static const struct check_log_sum *sums_behind(const struct log *l, uint64_t logical)
{
	const struct check_log_sum *sums = l->c->log_sums.at;
	size_t low = l->first_sum, high = l->c->log_sums.n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (sums_end(&sums[mid]) <= logical)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->c->log_sums.n ? &sums[low] : NULL;
}

/* Keeps the checksums themselves if data will be verified. */
static bool copy_sums(struct log *l, struct check_log_sum *s, const uint8_t *bytes)
{
	const size_t size = s->length / l->c->items.sectorsize * l->c->items.csum_size;
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (!(l->c->opts.flags & BTRKIT_CHECK_DATA))
		return true;
	s->sums = malloc(size);
	if (!s->sums)
		return !check_fail(l->c, err_nomem(&err), &err);
	memcpy(s->sums, bytes, size);
	return true;
}

int log_data_csums(void *ctx, const struct sweep_log_item *at, uint64_t start, uint64_t length, const uint8_t *csums,
		   struct btrkit_error *err)
{
	struct log *l = ctx;
	const struct item_ctx *items = &l->c->items;
	const struct check_log_sum *sums = l->c->log_sums.at;
	const uint64_t before = l->c->log_sums.n > l->first_sum ? sums_end(&sums[l->c->log_sums.n - 1]) : 0;
	struct check_log_sum s = { start, length, NULL };
	uint64_t twice = 0;
	struct check_log_sum *to;

	(void)err;
	if (start + length < start) {
		log_report(l, CHECK_CSUM_EXTENT, at->leaf->bytenr, &at->item->key, "key.offset",
			   "checksum item in a log tree exceeds the address space");
		return 0;
	}
	if (start < before) {
		log_report(l, CHECK_CSUM_OVERLAP, at->leaf->bytenr, &at->item->key, "key.offset",
			   "checksum item in a log tree overlaps the previous one");
		twice = before - start < length ? before - start : length;
	}
	s.start += twice;
	s.length -= twice;
	if (!s.length || !copy_sums(l, &s, csums + twice / items->sectorsize * items->csum_size))
		return 0;
	to = check_list_add(l->c, &l->c->log_sums, sizeof(*to));
	if (to)
		*to = s;
	else
		free(s.sums);
	return 0;
}

/* Returns the number of bytes in a range without a checksum in the log or in the checksum tree. */
static uint64_t nodatasum_bytes(struct log *l, const struct range *range)
{
	uint64_t nodatasum = 0, pos = range->start;

	while (pos < range_end(range)) {
		const struct check_log_sum *s = sums_behind(l, pos);
		uint64_t end = range_end(range);

		if (s && s->start <= pos) {
			pos = sums_end(s);
			continue;
		}
		if (s && s->start < end)
			end = s->start;
		nodatasum += end - pos - check_csum_bytes(l->c, pos, end - pos, &l->hints.csum);
		pos = end;
	}
	return nodatasum;
}

static void check_wanted(struct log *l, const struct log_wanted *w)
{
	const struct btrkit_key key = { w->objectid, KEY_EXTENT_DATA, w->offset };
	const uint64_t nodatasum = nodatasum_bytes(l, &w->range);
	const struct check_location at = { OID_TREE_LOG, w->leaf, &key, "disk_bytenr" };

	if (!w->none && nodatasum)
		check_report_at(l->c, CHECK_LOG_CSUM, &at, "%" PRIu64 " bytes of data in a log tree have no checksums",
				nodatasum);
	if (w->none && nodatasum < w->range.length)
		check_report_at(l->c, CHECK_LOG_CSUM, &at,
				"%" PRIu64 " bytes of data in a log tree have checksums, but their file has nodatasum",
				w->range.length - nodatasum);
}

void log_data_end(struct log *l)
{
	const struct log_wanted *wanted = l->wanted.at;

	for (size_t i = 0; i < l->wanted.n && !l->lost && !check_failed(l->c); i++)
		check_wanted(l, &wanted[i]);
	l->wanted.n = 0;
}

static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->length > y->length) - (x->length < y->length);
}

/* Merges equal ranges, which are one extent. Reports others that overlap: replay would make overlapping extents. */
void log_data_join(struct log *l)
{
	struct range *data = l->c->log_data.at;
	struct range last = { 0, 0 };
	size_t n = 0;

	if (l->c->log_data.n)
		qsort(data, l->c->log_data.n, sizeof(*data), compare);
	for (size_t i = 0; i < l->c->log_data.n; i++) {
		const struct range at = data[i];

		if (n && !compare(&at, &last))
			continue;
		if (n && at.start < range_end(&data[n - 1]))
			log_report(l, CHECK_LOG_EXTENT, at.start, NULL, "disk_bytenr",
				   "data extents in log trees overlap");
		last = at;
		if (!n || at.start > range_end(&data[n - 1]))
			data[n++] = at;
		else if (range_end(&at) > range_end(&data[n - 1]))
			data[n - 1].length = range_end(&at) - data[n - 1].start;
	}
	l->c->log_data.n = n;
}
