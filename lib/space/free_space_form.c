// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/free_space_form.h"

#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/format/items/free_space.h"
#include "lib/space/free_space_tree.h"

/* An oversized form is only converted when the other one has this many items less. */
#define THRESHOLD_BUFFER 100u

/* Number of items inserted at a time. */
#define BATCH 64u

struct free_space_thresholds free_space_thresholds(uint64_t group_length, uint32_t sectorsize)
{
	const uint64_t range = 8ull * FREE_SPACE_BITMAP_BYTES * sectorsize;
	const uint64_t bitmaps = group_length / range + !!(group_length % range);
	/* As many extents as take the space of the bitmaps, the last of which counts as a full one. */
	const uint64_t high = bitmaps * (sizeof(struct disk_item) + FREE_SPACE_BITMAP_BYTES) / sizeof(struct disk_item);

	return (struct free_space_thresholds){ high > THRESHOLD_BUFFER ? (uint32_t)high - THRESHOLD_BUFFER : 0,
					       (uint32_t)high };
}

struct list {
	struct range *at;
	size_t n, size;
};

static int list_add(struct list *l, const struct range *r, struct btrkit_error *err)
{
	if (l->n == l->size) {
		const size_t size = l->size ? 2 * l->size : 256;
		struct range *at = reallocarray(l->at, size, sizeof(*at));

		if (!at)
			return err_nomem(err);
		l->at = at;
		l->size = size;
	}
	l->at[l->n++] = *r;
	return 0;
}

int free_space_write_info(const struct free_space_editor *e, struct btrkit_error *err)
{
	const struct disk_free_space_info info = { le32_put(e->count),
						   le32_put(e->bitmaps ? FREE_SPACE_USING_BITMAPS : 0) };

	return edit_replace(e->t, &KEY(e->group->start, KEY_FREE_SPACE_INFO, e->group->length), &info, sizeof(info),
			    err);
}

/* Reads all ranges of the group. The reader checks them against the count, which has been stored. */
static int read_ranges(const struct free_space_editor *e, struct list *l, struct btrkit_error *err)
{
	struct free_space_tree t;
	struct range free;
	int ret;

	free_space_tree_begin_at(&t, e->t->overlay->fs, &e->t->c.root, e->group->start);
	ret = free_space_tree_enter(&t, e->group, err);
	while (!ret) {
		ret = free_space_tree_next(&t, &free, err);
		if (!ret)
			ret = list_add(l, &free, err);
	}
	free_space_tree_release(&t);
	return ret < 0 ? ret : 0;
}

/* Moves the group's ranges from the tree to the list. */
static int take_out(struct free_space_editor *e, struct list *l, struct btrkit_error *err)
{
	const uint64_t last = e->group->start + e->group->length - 1;
	int ret = free_space_write_info(e, err);

	e->bitmap.length = 0;
	if (!ret)
		ret = read_ranges(e, l, err);
	if (!ret)
		ret = edit_delete_range(e->t, &KEY(e->group->start, KEY_FREE_SPACE_EXTENT, 0),
					&KEY(last, UINT8_MAX, UINT64_MAX), NULL, err);
	return ret;
}

/* Bitmaps to be inserted, and how much of the list they represent. */
struct bitmaps {
	const struct list *list;
	size_t next;
	uint64_t at; /* there are bitmaps up to this address */
	struct item items[BATCH];
	uint8_t bits[BATCH][FREE_SPACE_BITMAP_BYTES];
};

/* Fills in the next bitmap, which ends at @end. */
static void fill(const struct free_space_editor *e, struct bitmaps *b, uint64_t end, uint8_t *bits)
{
	memset(bits, 0, FREE_SPACE_BITMAP_BYTES);
	while (b->next < b->list->n && b->list->at[b->next].start < end) {
		const struct range *r = &b->list->at[b->next];
		const uint64_t first = r->start > b->at ? r->start : b->at,
			       last = range_end(r) < end ? range_end(r) : end;

		bits_put(bits, (first - b->at) / e->sectorsize, (last - b->at) / e->sectorsize, true);
		if (range_end(r) > end)
			break;
		b->next++;
	}
}

static int insert_bitmaps(const struct free_space_editor *e, struct bitmaps *b, struct btrkit_error *err)
{
	const uint64_t whole = 8ull * FREE_SPACE_BITMAP_BYTES * e->sectorsize;
	const uint64_t group_end = e->group->start + e->group->length;
	int ret = 0;

	b->at = e->group->start;
	while (!ret && b->at < group_end) {
		uint32_t n;

		for (n = 0; n < BATCH && b->at < group_end; n++) {
			const uint64_t length = group_end - b->at < whole ? group_end - b->at : whole;
			const uint64_t sectors = length / e->sectorsize;

			fill(e, b, b->at + length, b->bits[n]);
			b->items[n] = (struct item){ KEY(b->at, KEY_FREE_SPACE_BITMAP, length), b->bits[n],
						     (uint32_t)(sectors / 8 + !!(sectors % 8)) };
			b->at += length;
		}
		ret = edit_insert_many(e->t, b->items, n, err);
	}
	return ret;
}

int free_space_to_bitmaps(struct free_space_editor *e, struct btrkit_error *err)
{
	struct bitmaps *b = malloc(sizeof(*b));
	struct list l = { 0 };
	int ret;

	if (!b)
		return err_nomem(err);
	b->list = &l;
	b->next = 0;
	ret = take_out(e, &l, err);
	if (!ret)
		ret = insert_bitmaps(e, b, err);
	free(l.at);
	free(b);
	e->bitmaps = true;
	e->stats->to_bitmaps++;
	return ret;
}

int free_space_to_extents(struct free_space_editor *e, struct btrkit_error *err)
{
	struct list l = { 0 };
	int ret = take_out(e, &l, err);

	for (size_t i = 0; !ret && i < l.n; i += BATCH) {
		struct item items[BATCH];
		uint32_t n;

		for (n = 0; n < BATCH && i + n < l.n; n++)
			items[n] = (struct item){ KEY(l.at[i + n].start, KEY_FREE_SPACE_EXTENT, l.at[i + n].length),
						  NULL, 0 };
		ret = edit_insert_many(e->t, items, n, err);
	}
	free(l.at);
	e->bitmaps = false;
	e->stats->to_extents++;
	return ret;
}
