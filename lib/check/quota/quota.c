// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds qgroups. */
#include "lib/check/quota/quota.h"

#include <stdlib.h>

static int compare_ids(const void *x, const void *y)
{
	const uint64_t a = ((const struct check_qgroup *)x)->id, b = ((const struct check_qgroup *)y)->id;

	return a < b ? -1 : a > b;
}

struct check_qgroup *check_qgroup_find(const struct check_quota *q, uint64_t id)
{
	const struct check_qgroup wanted = { .id = id };

	return q->groups.n ? bsearch(&wanted, q->groups.at, q->groups.n, sizeof(wanted), compare_ids) : NULL;
}
