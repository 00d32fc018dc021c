/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_USAGE_WORK_H
#define BTRKIT_USAGE_WORK_H

#include "lib/usage/state.h"

#define USAGE_THREADS_MAX 64u

/* Reports progress: @n more of @due are done. To be called by one thread at a time. */
int usage_progress(struct usage_work *w, uint64_t n, struct btrkit_error *err) BTRKIT_MUST_CHECK;
/* Returns the number of additional threads; 0: use the caller's thread only. @wanted: from the options */
unsigned usage_threads(unsigned wanted);
/* Creates a pipeline with w->threads threads, or without any if they cannot be started. */
int usage_pipeline(struct usage_work *w, const struct pipeline_ops *ops, void *const *slots, size_t n,
		   struct pipeline **ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

#endif
