// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/free_map.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"

struct free_map {
	struct range over;
	uint32_t sectorsize;
	uint64_t bytes;
	uint64_t n;	    /* number of ranges, none of them adjacent */
	struct range *list; /* in order; NULL: empty, or @bits is used */
	size_t room;
	uint8_t *bits;	    /* one bit per sector; NULL: @list is used */
};

int free_map_create(const struct range *over, uint32_t sectorsize, struct free_map **ret, struct btrkit_error *err)
{
	struct free_map *m = calloc(1, sizeof(*m));

	if (!m)
		return err_nomem(err);
	m->over = *over;
	m->sectorsize = sectorsize;
	*ret = m;
	return 0;
}

struct free_map *free_map_destroy(struct free_map *m)
{
	if (m) {
		free(m->list);
		free(m->bits);
	}
	free(m);
	return NULL;
}

static uint64_t sectors(const struct free_map *m)
{
	return m->over.length / m->sectorsize;
}

static uint64_t sector_of(const struct free_map *m, uint64_t at)
{
	return (at - m->over.start) / m->sectorsize;
}

static uint64_t bitmap_size(const struct free_map *m)
{
	return sectors(m) / 8 + !!(sectors(m) % 8);
}

/* Maximum number of ranges for which the list is not larger than the bitmap. */
static uint64_t list_max(const struct free_map *m)
{
	return bitmap_size(m) / sizeof(*m->list);
}

/* The first range of the list that ends at @at or later. */
static size_t list_find(const struct free_map *m, uint64_t at)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (range_end(&m->list[mid]) < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Iterates over the ranges. @i: result of list_find() for the first @from; later @from is the end of the previous
 * range. If a range is longer than @enough bytes, its end may be cut off.
 */
static bool next_range(const struct free_map *m, uint64_t from, uint64_t enough, size_t *i, struct range *ret)
{
	uint64_t first, end, left;

	if (!m->bits) {
		while (*i < m->n && range_end(&m->list[*i]) <= from)
			++*i;
		if (*i == m->n)
			return false;
		*ret = m->list[(*i)++];
		if (ret->start < from)
			*ret = (struct range){ from, range_end(ret) - from };
		return true;
	}
	if (from < m->over.start)
		from = m->over.start;
	first = bits_find(m->bits, sectors(m), sector_of(m, from), true);
	if (first >= sectors(m))
		return false;
	left = sectors(m) - first;
	end = first + (enough / m->sectorsize < left ? enough / m->sectorsize + 1 : left);
	end = bits_find(m->bits, end, first, false);
	*ret = (struct range){ m->over.start + first * m->sectorsize, (end - first) * m->sectorsize };
	if (ret->start < from)
		*ret = (struct range){ from, range_end(ret) - from };
	return true;
}

static size_t first_index(const struct free_map *m, uint64_t from)
{
	return m->bits ? 0 : list_find(m, from);
}

bool free_map_next(const struct free_map *m, uint64_t from, struct range *ret)
{
	size_t i = first_index(m, from);

	return next_range(m, from, UINT64_MAX, &i, ret);
}

bool free_map_touches(const struct free_map *m, const struct range *r)
{
	struct range first;
	uint64_t from, end;

	if (!m->bits)
		return free_map_next(m, r->start, &first) && first.start < range_end(r);
	/* Search only the range, because ranges are mostly added in order, to a map that is empty from there on. */
	from = sector_of(m, r->start > m->over.start ? r->start : m->over.start);
	end = range_end(r) > m->over.start ? sector_of(m, range_end(r) - 1) + 1 : 0;
	end = end < sectors(m) ? end : sectors(m);
	return bits_find(m->bits, end, from, true) < end;
}

/* Whether all of @r, which is within the map, is in the set. */
static bool covers(const struct free_map *m, const struct range *r)
{
	const uint64_t first = sector_of(m, r->start), end = sector_of(m, range_end(r));
	struct range there;

	if (m->bits)
		return bits_find(m->bits, end, first, false) == end;
	return free_map_next(m, r->start, &there) && there.start == r->start && there.length >= r->length;
}

/* Moves the start of @r up to a multiple of @align. @return whether anything is left */
static bool align_range(struct range *r, uint64_t align)
{
	const uint64_t over = r->start % align, skip = over ? align - over : 0;

	if (skip >= r->length)
		return false;
	*r = (struct range){ r->start + skip, r->length - skip };
	return true;
}

bool free_map_find(const struct free_map *m, uint64_t from, uint64_t min, uint64_t max, uint64_t align,
		   struct range *ret)
{
	const uint64_t most = min > max ? min : max, enough = most > UINT64_MAX - align ? most : most + align;
	size_t i = first_index(m, from);

	for (struct range r; next_range(m, from, enough, &i, &r);) {
		from = range_end(&r);
		if (!align_range(&r, align) || r.length < min)
			continue;
		*ret = (struct range){ r.start, r.length < max ? r.length : max };
		return true;
	}
	return false;
}

uint64_t free_map_bytes(const struct free_map *m)
{
	return m->bytes;
}

uint64_t free_map_pieces(const struct free_map *m, uint64_t size, uint64_t enough)
{
	uint64_t from = m->over.start, n = 0;
	size_t i = first_index(m, from);

	for (struct range r; n < enough && next_range(m, from, UINT64_MAX, &i, &r);) {
		from = range_end(&r);
		if (align_range(&r, size))
			n += r.length / size;
	}
	return n < enough ? n : enough;
}

static int to_bits(struct free_map *m, struct btrkit_error *err)
{
	uint8_t *bits = calloc(1, bitmap_size(m));

	if (!bits)
		return err_nomem(err);
	for (size_t i = 0; i < m->n; i++)
		bits_put(bits, sector_of(m, m->list[i].start), sector_of(m, range_end(&m->list[i])), true);
	free(m->list);
	m->list = NULL;
	m->room = 0;
	m->bits = bits;
	return 0;
}

/* Makes room for @n ranges in total, in the smaller of both forms. */
static int reserve(struct free_map *m, uint64_t n, struct btrkit_error *err)
{
	const uint64_t max = list_max(m);
	struct range *more;
	uint64_t room;

	if (m->bits || n <= m->room)
		return 0;
	if (n > max)
		return to_bits(m, err);
	room = n < 2 * m->n ? 2 * m->n : n;
	room = room < max ? room : max;
	more = reallocarray(m->list, room, sizeof(*more));
	if (!more)
		return err_nomem(err);
	m->list = more;
	m->room = room;
	return 0;
}

/* Frees what is not needed. Without memory for a list, the bitmap remains. */
static void shrink(struct free_map *m)
{
	uint64_t from = m->over.start, n = 0;
	struct range *list;
	size_t i = 0;

	if (!m->n) {
		free(m->list);
		free(m->bits);
		m->list = NULL;
		m->bits = NULL;
		m->room = 0;
	}
	/* Half of the maximum, so that maps near it are not converted back and forth. */
	if (!m->bits || m->n > list_max(m) / 2)
		return;
	list = malloc(m->n * sizeof(*list));
	if (!list)
		return;
	for (struct range r; next_range(m, from, UINT64_MAX, &i, &r); from = range_end(&r))
		list[n++] = r;
	free(m->bits);
	m->bits = NULL;
	m->list = list;
	m->room = m->n;
}

static bool inside(const struct free_map *m, const struct range *r)
{
	const uint64_t offset = r->start - m->over.start;

	return r->start >= m->over.start && offset <= m->over.length && r->length <= m->over.length - offset &&
	       r->length && !(offset % m->sectorsize) && !(r->length % m->sectorsize);
}

static int refuse(const struct range *r, const char *why, struct btrkit_error *err)
{
	err_corrupt(err, NULL, "%" PRIu64 " bytes %s", r->length, why);
	err_at_logical(err, r->start);
	return -EUCLEAN;
}

static void list_add(struct free_map *m, const struct range *r)
{
	size_t at = list_find(m, r->start);
	struct range *l = m->list + at;

	if (at < m->n && range_end(l) == r->start) {
		l->length += r->length;
		if (at + 1 == m->n || range_end(l) != l[1].start)
			return;
		l->length += l[1].length;
		m->n--;
		memmove(l + 1, l + 2, (m->n - at - 1) * sizeof(*l));
	} else if (at < m->n && l->start == range_end(r)) {
		*l = (struct range){ r->start, l->length + r->length };
	} else {
		memmove(l + 1, l, (m->n - at) * sizeof(*l));
		*l = *r;
		m->n++;
	}
}

static void list_remove(struct free_map *m, const struct range *r)
{
	size_t at = list_find(m, range_end(r));
	struct range *l = m->list + at;
	const struct range old = *l;

	if (old.start < r->start) {
		l->length = r->start - old.start;
		if (range_end(&old) == range_end(r))
			return;
		at++;
		l++;
		memmove(l + 1, l, (m->n - at) * sizeof(*l));
		m->n++;
	}
	*l = (struct range){ range_end(r), range_end(&old) - range_end(r) };
	if (!l->length) {
		m->n--;
		memmove(l, l + 1, (m->n - at) * sizeof(*l));
	}
}

static bool bit_at(const struct free_map *m, uint64_t sector)
{
	return sector < sectors(m) && m->bits[sector / 8] >> sector % 8 & 1;
}

/* Set or clear bits. That is one range more or less, depending on the bits on both sides. */
static void bits_change(struct free_map *m, const struct range *r, bool set)
{
	const uint64_t first = sector_of(m, r->start), end = first + r->length / m->sectorsize;
	const unsigned beside = (first && bit_at(m, first - 1)) + bit_at(m, end);

	bits_put(m->bits, first, end, set);
	m->n = set ? m->n + 1 - beside : m->n - 1 + beside;
}

int free_map_add(struct free_map *m, const struct range *r, struct btrkit_error *err)
{
	int ret;

	if (!inside(m, r))
		return refuse(r, "are not within their block group", err);
	if (free_map_touches(m, r))
		return refuse(r, "become free, but are free already", err);
	ret = reserve(m, m->n + 1, err);
	if (ret)
		return ret;
	if (m->bits)
		bits_change(m, r, true);
	else
		list_add(m, r);
	m->bytes += r->length;
	shrink(m);
	return 0;
}

int free_map_remove(struct free_map *m, const struct range *r, struct btrkit_error *err)
{
	int ret;

	if (!inside(m, r) || !covers(m, r))
		return refuse(r, "are allocated, but are not free", err);
	ret = reserve(m, m->n + 1, err);
	if (ret)
		return ret;
	if (m->bits)
		bits_change(m, r, false);
	else
		list_remove(m, r);
	m->bytes -= r->length;
	shrink(m);
	return 0;
}

/* Merges the lists of both maps into @list, which has room for them. */
static int merge(struct free_map *m, const struct free_map *from, struct range *list, struct btrkit_error *err)
{
	uint64_t at = from->over.start, n = 0;
	size_t mine = 0, i = first_index(from, at);
	struct range r;
	bool more = next_range(from, at, UINT64_MAX, &i, &r);

	while (more || mine < m->n) {
		const bool take = more && (mine == m->n || r.start < m->list[mine].start);
		const struct range next = take ? r : m->list[mine];

		if (n && range_end(&list[n - 1]) > next.start)
			return refuse(&next, "become free, but are free already", err);
		if (n && range_end(&list[n - 1]) == next.start)
			list[n - 1].length += next.length;
		else
			list[n++] = next;
		if (take)
			more = next_range(from, range_end(&r), UINT64_MAX, &i, &r);
		else
			mine++;
	}
	m->n = n;
	return 0;
}

static int move_to_list(struct free_map *m, const struct free_map *from, struct btrkit_error *err)
{
	const uint64_t room = m->n + from->n;
	struct range *list = malloc(room * sizeof(*list));
	int ret;

	if (!list)
		return err_nomem(err);
	ret = merge(m, from, list, err);
	if (ret) {
		free(list);
		return ret;
	}
	free(m->list);
	m->list = list;
	m->room = room;
	return 0;
}

static int move_to_bits(struct free_map *m, const struct free_map *from, struct btrkit_error *err)
{
	uint64_t at = from->over.start;
	size_t i = first_index(from, at);

	for (struct range r; next_range(from, at, UINT64_MAX, &i, &r); at = range_end(&r))
		if (free_map_touches(m, &r))
			return refuse(&r, "become free, but are free already", err);
	at = from->over.start;
	i = first_index(from, at);
	for (struct range r; next_range(from, at, UINT64_MAX, &i, &r); at = range_end(&r))
		bits_change(m, &r, true);
	return 0;
}

int free_map_move(struct free_map *m, struct free_map *from, struct btrkit_error *err)
{
	int ret = 0;

	if (!from->n)
		return 0;
	if (!m->bits && m->n + from->n > list_max(m))
		ret = to_bits(m, err);
	if (!ret)
		ret = m->bits ? move_to_bits(m, from, err) : move_to_list(m, from, err);
	if (ret)
		return ret;
	m->bytes += from->bytes;
	shrink(m);
	from->bytes = 0;
	from->n = 0;
	shrink(from);
	return 0;
}
