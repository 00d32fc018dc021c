// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/sort.h"

#include <stdlib.h>
#include <string.h>

/* Up to this many entries are sorted by comparing. */
#define FEW 64u

static int compare(const void *a, const void *b)
{
	const struct sort_entry *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static unsigned byte_of(const struct sort_entry *e, unsigned byte)
{
	return (byte < 8 ? e->number >> 8 * byte : e->rank >> 8 * (byte - 8)) & 0xff;
}

/* One stable pass of the radix sort, by the given byte. */
static void distribute(const struct sort_entry *from, struct sort_entry *to, size_t n, unsigned byte)
{
	size_t at[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[byte_of(&from[i], byte)]++;
	for (unsigned i = 0; i < 256; i++) {
		const size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[byte_of(&from[i], byte)]++] = from[i];
}

void sort_entries(struct sort_entry *at, size_t n)
{
	struct sort_entry *other, *from = at, *to, differ = { 0 };

	if (n < 2)
		return;
	to = other = n > FEW ? reallocarray(NULL, n, sizeof(*other)) : NULL;
	if (!other) {
		qsort(at, n, sizeof(*at), compare);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		differ.rank |= at[i].rank ^ at[0].rank;
		differ.number |= at[i].number ^ at[0].number;
	}
	for (unsigned byte = 0; byte < 16; byte++) {
		struct sort_entry *done = to;

		if (!byte_of(&differ, byte))
			continue;
		distribute(from, to, n, byte);
		to = from;
		from = done;
	}
	if (from != at)
		memcpy(at, from, n * sizeof(*at));
	free(other);
}
