// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes files with holes to an archive. */
#include "config.h"

#include "lib/extract/tar.h"

#ifdef HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>

#include "lib/base/err.h"

/* GNU tar expects each region to begin at a block boundary. */
#define HOLE_UNIT 4096u
#define TAR_UNIT 512u

static int add_region(struct tar *t, uint64_t start, uint64_t end, struct btrkit_error *err)
{
	if (t->num_regions == t->room_regions) {
		const size_t room = t->room_regions ? 2 * t->room_regions : 64;
		struct tar_region *more = reallocarray(t->regions, room, sizeof(*more));

		if (!more)
			return err_nomem(err);
		t->regions = more;
		t->room_regions = room;
	}
	t->regions[t->num_regions++] = (struct tar_region){ start, end };
	return 0;
}

/* Finds the data ranges, rounded to whole units. */
static int find_regions(struct tar *t, struct btrkit_file *f, uint64_t size, struct btrkit_error *err)
{
	uint64_t at = 0, start, length;

	t->num_regions = t->at = 0;
	t->listed = false;
	while (!extract_next_data(f, at, &start, &length) && length) {
		uint64_t end;
		int ret = 0;

		at = start + length;
		start -= start % HOLE_UNIT;
		end = at % HOLE_UNIT ? at + (HOLE_UNIT - at % HOLE_UNIT) : at;
		if (end > size)
			end = size;
		if (t->num_regions && start <= t->regions[t->num_regions - 1].end)
			t->regions[t->num_regions - 1].end = end;
		else
			ret = add_region(t, start, end, err);
		if (ret)
			return ret;
	}
	return 0;
}

int tar_find_holes(struct extract *x, struct btrkit_file *f, const struct extract_item *item)
{
	struct tar *t = x->to;
	uint64_t data = 0;
	int ret = find_regions(t, f, item->i.size, x->err);

	if (ret)
		return ret;
	for (size_t i = 0; i < t->num_regions; i++)
		data += t->regions[i].end - t->regions[i].start;
	if (data == item->i.size)
		return 0;
	if (!t->num_regions)
		archive_entry_sparse_add_entry(t->e, 0, 0);
	for (size_t i = 0; i < t->num_regions; i++) {
		const struct tar_region *r = &t->regions[i];

		archive_entry_sparse_add_entry(t->e, (la_int64_t)r->start, (la_int64_t)(r->end - r->start));
	}
	return 1;
}

/* libarchive writes the list before the first byte of contents: a byte in a hole, or the first byte of the file. */
static int list_holes(struct extract *x, uint8_t first)
{
	struct tar *t = x->to;
	int ret = tar_write(x, &first, 1);

	t->listed = true;
	t->position = t->num_regions && !t->regions[0].start;
	return ret;
}

/* Writes zeros up to a position, except in holes. */
static int write_zeros(struct extract *x, uint64_t to)
{
	static const uint8_t zeros[65536];
	struct tar *t = x->to;

	for (; t->at < t->num_regions; t->at++) {
		const struct tar_region *r = &t->regions[t->at];

		if (t->position < r->start)
			t->position = r->start;
		while (t->position < to && t->position < r->end) {
			const uint64_t end = to < r->end ? to : r->end;
			const size_t n = end - t->position < sizeof(zeros) ? (size_t)(end - t->position) :
									      sizeof(zeros);
			int ret;

			tar_output(t, zeros, n);
			t->position += n;
			ret = extract_progress(x);
			if (ret)
				return ret;
		}
		if (t->position < r->end)
			break;
	}
	return 0;
}

int tar_put_sparse(void *ctx, uint64_t offset, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	struct extract *x = ctx;
	struct tar *t = x->to;
	int ret = 0;

	if (!t->listed)
		ret = list_holes(x, offset ? 0 : bytes[0]);
	if (!ret)
		ret = write_zeros(x, offset);
	if (ret)
		return ret;
	if (t->position > offset) {
		bytes++;
		len--;
	}
	tar_output(t, bytes, len);
	t->position += len;
	return t->error ? err_system(x->err, t->error, "archive") : 0;
}

int tar_end_sparse(struct extract *x, const struct extract_item *item)
{
	static const uint8_t zeros[TAR_UNIT];
	struct tar *t = x->to;
	uint64_t data = 0;
	int ret = t->listed ? 0 : list_holes(x, 0);

	if (!ret)
		ret = write_zeros(x, item->i.size);
	for (size_t i = 0; i < t->num_regions; i++)
		data += t->regions[i].end - t->regions[i].start;
	if (data % TAR_UNIT)
		tar_output(t, zeros, TAR_UNIT - data % TAR_UNIT);
	return ret;
}

#endif
