// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sorts the items of an inode by key. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/sort.h"
#include "lib/delayed/impl.h"

/* If more items than this are out of order, all are sorted again. */
#define SORTED_ONE_BY_ONE 16u

/* @return false: no memory */
static bool sort_all(struct delayed_inode *in)
{
	struct sort_entry *all = reallocarray(NULL, in->n, sizeof(*all));

	if (!all)
		return false;
	for (uint32_t i = 0; i < in->n; i++) {
		struct delayed_item *it = in->items[i];

		all[i] = (struct sort_entry){ it->type, it->offset, it };
	}
	sort_entries(all, in->n);
	for (uint32_t i = 0; i < in->n; i++)
		in->items[i] = all[i].what;
	in->sorted = in->n;
	free(all);
	return true;
}

void delayed_sort(struct delayed_inode *in)
{
	if (in->n - in->sorted > SORTED_ONE_BY_ONE && sort_all(in))
		return;
	for (; in->sorted < in->n; in->sorted++) {
		struct delayed_item *it = in->items[in->sorted];
		const struct btrkit_key key = delayed_key(in, it);
		uint32_t low = 0, high = in->sorted;

		while (low < high) {
			const uint32_t middle = low + (high - low) / 2;

			if (delayed_cmp(in->items[middle], &key) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		memmove(in->items + low + 1, in->items + low, (in->sorted - low) * sizeof(struct delayed_item *));
		in->items[low] = it;
	}
}
