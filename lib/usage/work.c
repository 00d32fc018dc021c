// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads and progress, the same for all steps. */
#include "lib/usage/work.h"

#include <errno.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/usage/state.h"

int usage_progress(struct usage_work *w, uint64_t n, struct btrkit_error *err)
{
	int ret;

	w->done += n;
	if (!w->opts.progress)
		return 0;
	ret = w->opts.progress(w->opts.progress_ctx, w->done, w->due);
	return ret ? err_system(err, ret, "interrupted by the caller") : 0;
}

int usage_pipeline(struct usage_work *w, const struct pipeline_ops *ops, void *const *slots, size_t n,
		   struct pipeline **ret, struct btrkit_error *err)
{
	struct btrkit_error own = BTRKIT_ERROR_INIT;
	int r = pipeline_create(ops, w->threads, slots, n, ret, &own);

	return r == -EAGAIN ? pipeline_create(ops, 0, slots, n, ret, err) : err_pass(err, &own, r);
}

unsigned usage_threads(unsigned wanted)
{
	unsigned threads = wanted ? wanted : each_processor();

	if (threads > USAGE_THREADS_MAX)
		threads = USAGE_THREADS_MAX;
	return threads == 1 ? 0 : threads;
}
