// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/pipeline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/each.h"
#include "lib/base/err.h"

/* Work is numbered consecutively; work number n uses slot n modulo the number of slots. */
struct pipeline {
	struct pipeline_ops ops;
	void *const *slots;
	bool *done; /* done by work(), not yet by finish() */
	size_t n;
	size_t submitted, taken, finished;
	pthread_mutex_t lock;
	pthread_cond_t more;  /* submitted, or ending */
	pthread_cond_t fewer; /* finished, or failed */
	pthread_t *threads;
	unsigned num_threads;
	bool finishing, ending;
	int ret;
	struct btrkit_error err;
};

static void take_failure(struct pipeline *p, int ret, const struct btrkit_error *err)
{
	if (!p->ret) {
		p->ret = ret;
		p->err = *err;
	}
	pthread_cond_broadcast(&p->fewer);
	pthread_cond_broadcast(&p->more);
}

/* Call finish() in order for work that is done, unless another thread is doing so. Called with the lock held. */
static void finish(struct pipeline *p)
{
	if (p->finishing)
		return;
	p->finishing = true;
	while (!p->ret && p->finished < p->taken && p->done[p->finished % p->n]) {
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		void *slot = p->slots[p->finished % p->n];
		int ret;

		pthread_mutex_unlock(&p->lock);
		ret = p->ops.finish(p->ops.ctx, slot, &err);
		pthread_mutex_lock(&p->lock);
		if (ret) {
			take_failure(p, ret, &err);
			break;
		}
		p->done[p->finished++ % p->n] = false;
		pthread_cond_broadcast(&p->fewer);
	}
	p->finishing = false;
}

/* Does the next submitted piece of work. Called with the lock held. */
static void work(struct pipeline *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	const size_t number = p->taken++ % p->n;
	int ret;

	pthread_mutex_unlock(&p->lock);
	ret = p->ops.work(p->ops.ctx, p->slots[number], &err);
	pthread_mutex_lock(&p->lock);
	p->done[number] = true;
	if (ret)
		take_failure(p, ret, &err);
	finish(p);
}

static void *thread(void *ctx)
{
	struct pipeline *p = ctx;

	pthread_mutex_lock(&p->lock);
	while (!p->ending && !p->ret) {
		if (p->taken == p->submitted)
			pthread_cond_wait(&p->more, &p->lock);
		else
			work(p);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

unsigned pipeline_threads(unsigned wanted)
{
	const unsigned threads = wanted ? wanted : each_processor();

	return threads < PIPELINE_THREADS_MAX ? threads : PIPELINE_THREADS_MAX;
}

int pipeline_create(const struct pipeline_ops *ops, unsigned threads, void *const *slots, size_t n,
		    struct pipeline **ret, struct btrkit_error *err)
{
	struct pipeline *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err);
	*p = (struct pipeline){ .ops = *ops, .slots = slots, .n = n };
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->more, NULL);
	pthread_cond_init(&p->fewer, NULL);
	p->done = calloc(n, sizeof(*p->done));
	p->threads = calloc(threads + !threads, sizeof(*p->threads));
	if (!p->done || !p->threads) {
		pipeline_destroy(p);
		return err_nomem(err);
	}
	while (p->num_threads < threads && !pthread_create(&p->threads[p->num_threads], NULL, thread, p))
		p->num_threads++;
	if (threads && !p->num_threads) {
		pipeline_destroy(p);
		return err_system(err, EAGAIN, "cannot start a thread");
	}
	*ret = p;
	return 0;
}

struct pipeline *pipeline_destroy(struct pipeline *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	while (p->num_threads)
		pthread_join(p->threads[--p->num_threads], NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->more);
	pthread_cond_destroy(&p->fewer);
	free(p->threads);
	free(p->done);
	free(p);
	return NULL;
}

/* Returns the first failure to the caller. Called with the lock held. */
static int outcome(const struct pipeline *p, struct btrkit_error *err)
{
	if (p->ret && err)
		*err = p->err;
	return p->ret;
}

int pipeline_next(struct pipeline *p, void **slot, struct btrkit_error *err)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	while (!p->ret && p->submitted - p->finished == p->n)
		pthread_cond_wait(&p->fewer, &p->lock);
	ret = outcome(p, err);
	if (!ret)
		*slot = p->slots[p->submitted % p->n];
	pthread_mutex_unlock(&p->lock);
	return ret;
}

void pipeline_submit(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->submitted++;
	if (p->num_threads)
		pthread_cond_signal(&p->more);
	else
		work(p);
	pthread_mutex_unlock(&p->lock);
}

int pipeline_drain(struct pipeline *p, struct btrkit_error *err)
{
	int ret;

	pthread_mutex_lock(&p->lock);
	while (!p->ret && p->finished < p->submitted)
		pthread_cond_wait(&p->fewer, &p->lock);
	ret = outcome(p, err);
	pthread_mutex_unlock(&p->lock);
	return ret;
}
