// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/commit/sync.h"

void sync_init(struct txn_sync *s)
{
	gate_init(&s->gate);
	pthread_mutex_init(&s->runs, NULL);
	pthread_mutex_init(&s->renames, NULL);
	pthread_mutex_init(&s->space, NULL);
	pthread_rwlock_init(&s->trees, NULL);
}

void sync_destroy(struct txn_sync *s)
{
	pthread_rwlock_destroy(&s->trees);
	pthread_mutex_destroy(&s->space);
	pthread_mutex_destroy(&s->renames);
	pthread_mutex_destroy(&s->runs);
	gate_destroy(&s->gate);
}
