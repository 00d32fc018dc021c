// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space_cache/progress.h"

#include "lib/base/err.h"

#define TOTAL 1000u

int progress_tell(struct progress *p, enum progress_step step, uint64_t done, uint64_t total, struct btrkit_error *err)
{
	static const uint64_t begins[PROGRESS_VERIFY + 2] = { 0, 100, 300, 500, 750, TOTAL };
	const uint64_t length = begins[step + 1] - begins[step];
	uint64_t now = begins[step];
	int ret;

	/* Use floating point, because @done may be an address, and would overflow. */
	if (total)
		now += done >= total ? length : (uint64_t)((double)length * (double)done / (double)total);
	if (!p->opts->progress || (p->told && now < p->told))
		return 0;
	p->told = now + 1;
	ret = p->opts->progress(p->opts->progress_ctx, now, TOTAL);
	if (ret)
		err_system(err, ret, "stopped by the caller");
	return ret;
}
