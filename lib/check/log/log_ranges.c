// SPDX-License-Identifier: LGPL-2.1-or-later
/* Data and checksums that only logs have, for the parts of the check that verify data. */
#include "lib/check/log/log_ranges.h"

#include <stdlib.h>

#include "lib/check/ranges.h"
#include "lib/check/state.h"

bool check_log_data(const struct check *c, uint64_t logical, uint64_t *end)
{
	const struct range *data = c->log_data.at;
	const size_t i = check_ranges_behind(&c->log_data, logical);

	if (i == c->log_data.n)
		return false;
	if (data[i].start > logical) {
		if (data[i].start < *end)
			*end = data[i].start;
		return false;
	}
	if (range_end(&data[i]) < *end)
		*end = range_end(&data[i]);
	return true;
}

void check_log_sums_release(struct check *c)
{
	struct check_log_sum *sums = c->log_sums.at;

	for (size_t i = 0; i < c->log_sums.n; i++)
		free(sums[i].sums);
	free(sums);
}
