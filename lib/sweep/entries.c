// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/entries.h"

#include <string.h>

void sweep_entries_merge(void *entries, size_t n, size_t size, const void *more, size_t num_more)
{
	uint8_t *at = entries;
	const uint8_t *from = more;

	/* Merge from the end, so that each entry moves once, and none is overwritten before that. */
	for (size_t to = n + num_more; num_more; to--) {
		if (n && sweep_entry_address(at, size, n - 1) > sweep_entry_address(from, size, num_more - 1))
			memmove(at + (to - 1) * size, at + --n * size, size);
		else
			memcpy(at + (to - 1) * size, from + --num_more * size, size);
	}
}
