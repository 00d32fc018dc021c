// SPDX-License-Identifier: LGPL-2.1-or-later
/* Progress of the passes over the data. */
#include "lib/check/data/data_progress.h"

#include "lib/check/findings.h"

void data_progress(struct data_check *d, uint64_t n)
{
	const uint32_t unit = d->c->items.nodesize;
	uint64_t units;

	pthread_mutex_lock(&d->c->lock);
	units = (d->bytes + n) / unit - d->bytes / unit;
	d->bytes += n;
	pthread_mutex_unlock(&d->c->lock);
	if (units)
		check_progress(d->c, units);
}
