// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tree/node.h"

#include <stdlib.h>

#include "lib/tree/filesystem.h"
#include "lib/volume/volume.h"

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void node_prefetch_children(const struct btrkit_fs *fs, const struct node *n, uint32_t from, uint32_t to)
{
	uint64_t *at = to > from ? malloc((to - from) * sizeof(*at)) : NULL;
	uint32_t count = 0, i, run;

	/* This is only a hint, so do nothing without memory. */
	if (!at)
		return;
	for (i = from; i < to; i++) {
		at[count] = le64_get(node_ptrs(n)[i].blockptr);
		count += !node_cached(fs, at[count]);
	}
	qsort(at, count, sizeof(*at), compare_u64);
	for (i = 0; i < count; i += run) {
		run = 1;
		while (i + run < count && at[i + run] == at[i] + (uint64_t)run * n->size)
			run++;
		volume_prefetch(fs->volume, at[i], (uint64_t)run * n->size);
	}
	free(at);
}
