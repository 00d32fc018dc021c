// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/gate.h"

void gate_init(struct gate *g)
{
	for (unsigned i = 0; i < PERCPU_SLOTS; i++)
		atomic_init(&g->stripes[i].inside, 0);
	atomic_init(&g->closed, false);
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->opened, NULL);
	pthread_cond_init(&g->emptied, NULL);
}

void gate_destroy(struct gate *g)
{
	pthread_cond_destroy(&g->emptied);
	pthread_cond_destroy(&g->opened);
	pthread_mutex_destroy(&g->lock);
}

void gate_enter(struct gate *g)
{
	/*
	 * Count first, then check: either this thread sees that the gate is closed, or the closing thread sees the
	 * count.
	 */
	for (;;) {
		atomic_fetch_add(&g->stripes[percpu_slot()].inside, 1);
		if (!atomic_load(&g->closed))
			return;
		gate_leave(g);
		pthread_mutex_lock(&g->lock);
		while (atomic_load(&g->closed))
			pthread_cond_wait(&g->opened, &g->lock);
		pthread_mutex_unlock(&g->lock);
	}
}

void gate_leave(struct gate *g)
{
	if (atomic_fetch_sub(&g->stripes[percpu_slot()].inside, 1) != 1 || !atomic_load(&g->closed))
		return;
	pthread_mutex_lock(&g->lock);
	pthread_cond_broadcast(&g->emptied);
	pthread_mutex_unlock(&g->lock);
}

/* Once the gate is closed, a stripe that was seen empty stays empty, apart from threads that leave again at once. */
static bool somebody_inside(struct gate *g)
{
	for (unsigned i = 0; i < PERCPU_SLOTS; i++)
		if (atomic_load(&g->stripes[i].inside))
			return true;
	return false;
}

void gate_close(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (atomic_load(&g->closed))
		pthread_cond_wait(&g->opened, &g->lock);
	atomic_store(&g->closed, true);
	while (somebody_inside(g))
		pthread_cond_wait(&g->emptied, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

void gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	atomic_store(&g->closed, false);
	pthread_cond_broadcast(&g->opened);
	pthread_mutex_unlock(&g->lock);
}
