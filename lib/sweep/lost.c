// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/lost.h"

#include <errno.h>
#include <stdlib.h>

int sweep_lost_add(struct array *lost, uint64_t first, uint64_t last, struct btrkit_error *err)
{
	struct sweep_lost *to = array_add(lost, sizeof(*to), err);

	if (!to)
		return -ENOMEM;
	*to = (struct sweep_lost){ first, last };
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct sweep_lost *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

void sweep_lost_sort(struct array *lost)
{
	if (lost->n)
		qsort(lost->at, lost->n, sizeof(struct sweep_lost), compare);
}

bool sweep_lost_has(const struct array *lost, uint64_t objectid)
{
	const struct sweep_lost *ranges = lost->at;
	size_t low = 0, high = lost->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (ranges[mid].first <= objectid)
			low = mid + 1;
		else
			high = mid;
	}
	return low && objectid <= ranges[low - 1].last;
}
