// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/check/ranges.h"

#include "lib/check/findings.h"
#include "lib/check/state.h"

void check_ranges_add(struct check *c, struct array *list, uint64_t start, uint64_t end)
{
	struct range *last = list->n ? (struct range *)list->at + list->n - 1 : NULL, *to;

	if (last && range_end(last) == start) {
		last->length += end - start;
		return;
	}
	to = check_list_add(c, list, sizeof(*to));
	if (to)
		*to = (struct range){ start, end - start };
}

size_t check_ranges_behind(const struct array *list, uint64_t address)
{
	const struct range *ranges = list->at;
	size_t low = 0, high = list->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (range_end(&ranges[mid]) <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
