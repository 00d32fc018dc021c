// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/mkfs/filled/lane.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/io/batch.h"

struct mkfs_lane {
	struct io_batch *batches[2];
	unsigned filling; /* batch being filled; the thread writes the other */
	pthread_t thread;
	bool running;
	int ret; /* result of the thread */
	struct btrkit_error err;
};

int mkfs_lane_create(struct btrkit_io *io, size_t budget, struct mkfs_lane **ret, struct btrkit_error *err)
{
	struct mkfs_lane *l = calloc(1, sizeof(*l));
	int r = l ? 0 : err_nomem(err);

	for (unsigned i = 0; !r && i < 2; i++)
		r = io_batch_create(io, budget / 2, &l->batches[i], err);
	if (r)
		mkfs_lane_destroy(l);
	else
		*ret = l;
	return r;
}

/* Waits for the thread and returns its result. */
static int wait_for(struct mkfs_lane *l, struct btrkit_error *err)
{
	if (!l->running)
		return 0;
	pthread_join(l->thread, NULL);
	l->running = false;
	if (l->ret && err)
		*err = l->err;
	return l->ret;
}

struct mkfs_lane *mkfs_lane_destroy(struct mkfs_lane *l)
{
	if (!l)
		return NULL;
	(void)wait_for(l, NULL);
	io_batch_destroy(l->batches[0]);
	io_batch_destroy(l->batches[1]);
	free(l);
	return NULL;
}

static void *drain(void *ctx)
{
	struct mkfs_lane *l = ctx;

	l->err = (struct btrkit_error)BTRKIT_ERROR_INIT;
	l->ret = io_batch_drain(l->batches[!l->filling], &l->err);
	return NULL;
}

int mkfs_lane_write(struct mkfs_lane *l, uint64_t offset, const void *data, size_t len, struct btrkit_error *err)
{
	int ret;

	if (!io_batch_has_room(l->batches[l->filling], len)) {
		ret = wait_for(l, err);
		if (ret)
			return ret;
		l->filling = !l->filling;
		l->running = !pthread_create(&l->thread, NULL, drain, l);
		if (!l->running)
			ret = io_batch_drain(l->batches[!l->filling], err);
		if (ret)
			return ret;
	}
	return io_batch_write(l->batches[l->filling], offset, data, len, err);
}

int mkfs_lane_finish(struct mkfs_lane *l, struct btrkit_error *err)
{
	const int ret = wait_for(l, err);

	return ret ? ret : io_batch_drain(l->batches[l->filling], err);
}
