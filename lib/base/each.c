// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/each.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/sysinfo.h>

#define THREADS_MAX 64u

struct pieces {
	atomic_size_t next;
	size_t n;
	void (*work)(void *ctx, size_t i);
	void *ctx;
};

static void *take(void *arg)
{
	struct pieces *p = arg;

	for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->n;)
		p->work(p->ctx, i);
	return NULL;
}

void each(size_t n, unsigned threads, void (*work)(void *ctx, size_t i), void *ctx)
{
	struct pieces p = { .n = n, .work = work, .ctx = ctx };
	pthread_t others[THREADS_MAX];
	unsigned started = 0;

	if (threads > n)
		threads = (unsigned)n;
	while (started + 1 < threads && started < THREADS_MAX && !pthread_create(&others[started], NULL, take, &p))
		started++;
	take(&p);
	while (started)
		pthread_join(others[--started], NULL);
}

unsigned each_processor(void)
{
	const int n = get_nprocs();

	return n > 0 ? (unsigned)n : 1;
}
