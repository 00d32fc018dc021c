/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_SPACE_RANGE_H
#define BTRKIT_SPACE_RANGE_H

/* Ranges of logical addresses, and bitmaps of them. */

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/le.h"

struct range {
	uint64_t start, length;
};

static inline uint64_t range_end(const struct range *r)
{
	return r->start + r->length;
}

/*
 * Finds the first bit from @from on that is @set, in a bitmap of @n bits, lowest bit first. @return its number, or @n
 */
static inline uint64_t bits_find(const uint8_t *map, uint64_t n, uint64_t from, bool set)
{
	while (from < n) {
		const uint64_t byte = from / 8, left = n / 8 + !!(n % 8) - byte;
		le64 raw = { { 0 } };
		uint64_t word;

		memcpy(&raw, map + byte, left < sizeof(raw) ? left : sizeof(raw));
		word = (set ? le64_get(raw) : ~le64_get(raw)) >> (from % 8);
		if (word) {
			from += (unsigned)__builtin_ctzll(word);
			return from < n ? from : n;
		}
		from += 64 - from % 8;
	}
	return n;
}

/* Sets the bits from @from on and before @to to @set. */
static inline void bits_put(uint8_t *map, uint64_t from, uint64_t to, bool set)
{
	const uint64_t first = from / 8, last = to / 8;
	const uint8_t head = (uint8_t)(0xff << from % 8), tail = (uint8_t)~(0xff << to % 8);

	if (from >= to)
		return;
	if (first == last) {
		map[first] = (uint8_t)(set ? map[first] | (head & tail) : map[first] & ~(head & tail));
		return;
	}
	map[first] = (uint8_t)(set ? map[first] | head : map[first] & ~head);
	memset(map + first + 1, set ? 0xff : 0, last - first - 1);
	/* If the range ends at a byte boundary, there may be no further byte. */
	if (tail)
		map[last] = (uint8_t)(set ? map[last] | tail : map[last] & ~tail);
}

#endif
