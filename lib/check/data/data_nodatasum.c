// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects data without checksums in block groups with parity. Only the parity can show whether it is damaged. */
#include <stdlib.h>

#include "lib/check/data/data_nodatasum.h"
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/volume/groups.h"
#include "lib/space/range.h"

void check_nodatasum_data(struct check *c, uint64_t start, uint64_t length)
{
	size_t hint = 0;
	const struct check_group *g;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct range *to;

	if (!(c->opts.flags & BTRKIT_CHECK_DATA))
		return;
	g = check_group_of(c, start, &hint);
	if (!g || !(g->flags & (BG_RAID5 | BG_RAID6)) || length > g->start + g->length - start)
		return;
	pthread_mutex_lock(&c->lock);
	to = c->nodatasum.n ? (struct range *)c->nodatasum.at + c->nodatasum.n - 1 : NULL;
	if (to && range_end(to) == start) {
		to->length += length;
	} else {
		to = array_add(&c->nodatasum, sizeof(*to), NULL);
		if (to)
			*to = (struct range){ start, length };
	}
	pthread_mutex_unlock(&c->lock);
	if (!to)
		check_fail(c, err_nomem(&err), &err);
}

static int compare(const void *x, const void *y)
{
	const struct range *a = x, *b = y;

	return a->start < b->start ? -1 : a->start > b->start;
}

void data_sort_nodatasum(struct check *c)
{
	struct range *r = c->nodatasum.at;
	size_t n = 0;

	if (!c->nodatasum.n)
		return;
	qsort(r, c->nodatasum.n, sizeof(*r), compare);
	for (size_t i = 1; i < c->nodatasum.n; i++) {
		if (r[i].start > range_end(&r[n]))
			r[++n] = r[i];
		else if (range_end(&r[i]) > range_end(&r[n]))
			r[n].length = range_end(&r[i]) - r[n].start;
	}
	c->nodatasum.n = n + 1;
}
