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
	uint32_t count = to > from ? to - from : 0, i, run;
	uint64_t *at = malloc(count * sizeof(*at));

	/* Only advice, so without memory there is none. */
	if (!at)
		return;
	for (i = 0; i < count; i++)
		at[i] = le64_get(node_ptrs(n)[from + i].blockptr);
	qsort(at, count, sizeof(*at), compare_u64);
	for (i = 0; i < count; i += run) {
		run = 1;
		while (i + run < count && at[i + run] == at[i] + (uint64_t)run * n->size)
			run++;
		volume_prefetch(fs->volume, at[i], (uint64_t)run * n->size);
	}
	free(at);
}
