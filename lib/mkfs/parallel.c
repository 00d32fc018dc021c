// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/parallel.h"

#include <pthread.h>
#include <time.h>

#include "lib/base/err.h"

#define THREADS_MAX 64
#define WATCH_NS 100000000

struct crew {
	const struct mkfs_plan *plan;
	const struct mkfs_job *job;
	pthread_mutex_t lock;
	pthread_cond_t left;
	unsigned next;	  /* next device to work on */
	unsigned working; /* running threads */
	int ret;
	struct btrkit_error err;
};

static void take_failure(struct crew *c, unsigned device, int ret, struct btrkit_error *err)
{
	if (!c->ret) {
		err_at_devid(err, device + 1u);
		c->ret = ret;
		c->err = *err;
	}
	if (!c->job->all)
		c->next = c->plan->num_devices;
}

static void work(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->next < c->plan->num_devices) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		const unsigned device = c->next++;
		int ret;

		pthread_mutex_unlock(&c->lock);
		ret = c->job->work(c->plan, device, c->job->ctx, &err);
		pthread_mutex_lock(&c->lock);
		if (ret)
			take_failure(c, device, ret, &err);
	}
	pthread_mutex_unlock(&c->lock);
}

static void *thread(void *ctx)
{
	struct crew *c = ctx;

	work(c);
	pthread_mutex_lock(&c->lock);
	c->working--;
	pthread_cond_signal(&c->left);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Waits until the last thread has finished. */
static void wait_for_all(struct crew *c)
{
	struct timespec until;

	pthread_mutex_lock(&c->lock);
	while (c->working) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WATCH_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&c->left, &c->lock, &until);
		if (!c->job->watch)
			continue;
		pthread_mutex_unlock(&c->lock);
		c->job->watch(c->job->ctx);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	/* Report the final state in any case. */
	if (c->job->watch)
		c->job->watch(c->job->ctx);
}

static unsigned start(struct crew *c, pthread_t *threads)
{
	unsigned started = 0;

	pthread_mutex_lock(&c->lock);
	while (started < c->plan->num_devices && started < THREADS_MAX &&
	       !pthread_create(&threads[started], NULL, thread, c))
		started++;
	c->working = started;
	pthread_mutex_unlock(&c->lock);
	return started;
}

int mkfs_on_devices(const struct mkfs_plan *p, const struct mkfs_job *job, struct btrkit_error *err)
{
	struct crew c = { .plan = p, .job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };
	pthread_t threads[THREADS_MAX];
	unsigned started;

	if (p->num_devices == 1)
		return job->work(p, 0, job->ctx, err);
	started = start(&c, threads);
	if (!started)
		work(&c);
	wait_for_all(&c);
	while (started)
		pthread_join(threads[--started], NULL);
	if (c.ret && err)
		*err = c.err;
	return c.ret;
}
