// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/samples.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/items_files.h"
#include "tests/unit/items_space.h"
#include "tests/unit/items_trees.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define SAMPLES (COUNT(file_samples) + COUNT(tree_samples) + COUNT(space_samples))

const struct sample *sample_at(size_t i)
{
	if (i < COUNT(file_samples))
		return &file_samples[i];
	i -= COUNT(file_samples);
	if (i < COUNT(tree_samples))
		return &tree_samples[i];
	i -= COUNT(tree_samples);
	return i < COUNT(space_samples) ? &space_samples[i] : NULL;
}

static int by_key(const void *a, const void *b)
{
	return key_cmp(&(*(const struct sample *const *)a)->key, &(*(const struct sample *const *)b)->key);
}

uint32_t samples_leaf(uint8_t *block, uint32_t len)
{
	struct disk_header *h = (struct disk_header *)block;
	struct disk_item *items = (struct disk_item *)(h + 1);
	uint32_t end = len - (uint32_t)sizeof(*h), n = 0;
	const struct sample *order[SAMPLES];

	for (size_t i = 0; i < SAMPLES; i++)
		order[i] = sample_at(i);
	qsort(order, SAMPLES, sizeof(order[0]), by_key);
	memset(items, 0, end);
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sample *s = order[i];

		if (i && !key_cmp(&s->key, &order[i - 1]->key))
			continue;
		if (end - (n + 1) * sizeof(*items) < s->size)
			return 0;
		end -= s->size;
		items[n++] = (struct disk_item){ key_put(&s->key), le32_put(end), le32_put(s->size) };
		memcpy((uint8_t *)items + end, s->data, s->size);
	}
	h->nritems = le32_put(n);
	h->level = 0;
	return n;
}
