// SPDX-License-Identifier: LGPL-2.1-or-later
/* Changes of the extent tree are recorded per group, and netted when they are requested. */
#include "lib/space/space_impl.h"

#include <stdlib.h>

#include "lib/base/err.h"

int space_record(struct space_group *g, const struct range *r, bool free, struct btrkit_error *err)
{
	struct space_change *last = g->num_changes ? &g->changes[g->num_changes - 1] : NULL;

	if (last && last->free == free && range_end(&last->range) == r->start) {
		last->range.length += r->length;
		return 0;
	}
	if (g->num_changes == g->changes_size) {
		const size_t size = g->changes_size ? 2 * g->changes_size : 8;
		struct space_change *more = reallocarray(g->changes, size, sizeof(*more));

		if (!more)
			return err_nomem(err);
		g->changes = more;
		g->changes_size = size;
	}
	g->changes[g->num_changes++] = (struct space_change){ *r, free };
	return 0;
}

/* Start or end of a change: from there on, there is one more freeing or using change, or one less. */
struct edge {
	uint64_t at;
	int add;
};

static int by_address(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Uses and frees of the same space in turn amount to one of them or to nothing, in whatever order they are. */
static int net(struct edge *edges, size_t n, struct space_change *ret, size_t *count, struct btrkit_error *err)
{
	size_t out = 0;
	int sum = 0;

	qsort(edges, n, sizeof(*edges), by_address);
	for (size_t i = 0; i < n;) {
		const uint64_t at = edges[i].at;
		const int before = sum;

		for (; i < n && edges[i].at == at; i++)
			sum += edges[i].add;
		if (sum < -1 || sum > 1) {
			err_corrupt(err, NULL, "space is %s twice", sum > 0 ? "freed" : "used");
			err_at_logical(err, at);
			return -EUCLEAN;
		}
		if (sum == before)
			continue;
		if (before)
			ret[out - 1].range.length = at - ret[out - 1].range.start;
		if (sum)
			ret[out++] = (struct space_change){ { at, 0 }, sum > 0 };
	}
	*count = out;
	return 0;
}

int space_take_changes(struct space_group *g, struct space_change **ret, size_t *n, struct btrkit_error *err)
{
	const size_t edges = 2 * g->num_changes;
	struct edge *at = calloc(edges + 1, sizeof(*at));
	struct space_change *changes = calloc(edges + 1, sizeof(*changes));
	int r;

	if (!at || !changes) {
		free(at);
		free(changes);
		return err_nomem(err);
	}
	for (size_t i = 0; i < g->num_changes; i++) {
		const struct space_change *c = &g->changes[i];

		at[2 * i] = (struct edge){ c->range.start, c->free ? 1 : -1 };
		at[2 * i + 1] = (struct edge){ range_end(&c->range), c->free ? -1 : 1 };
	}
	r = net(at, edges, changes, n, err);
	free(at);
	if (r) {
		free(changes);
		return r;
	}
	g->num_changes = 0;
	*ret = changes;
	return 0;
}
