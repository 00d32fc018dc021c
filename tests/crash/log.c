// SPDX-License-Identifier: LGPL-2.1-or-later
#include "log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void log_put(struct log *log, size_t at, struct event e)
{
	if (log->n == log->room) {
		log->room = log->room ? 2 * log->room : 64;
		log->events = reallocarray(log->events, log->room, sizeof(*log->events));
		if (!log->events)
			exit(99);
	}
	memmove(log->events + at + 1, log->events + at, (log->n - at) * sizeof(e));
	log->events[at] = e;
	log->n++;
}

struct event log_take(struct log *log, size_t at)
{
	struct event e = log->events[at];

	log->n--;
	memmove(log->events + at, log->events + at + 1, (log->n - at) * sizeof(e));
	return e;
}

void log_release(struct log *log)
{
	while (log->n)
		free(log->events[--log->n].data);
	free(log->events);
}

/* Several threads may write at once. */
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

static void take(const struct log_tap *tap, struct event e)
{
	e.device = tap->device;
	pthread_mutex_lock(&taking);
	log_put(tap->log, tap->log->n, e);
	pthread_mutex_unlock(&taking);
}

static int on_write(void *ctx, uint64_t offset, const void *data, size_t len)
{
	uint8_t *copy = malloc(len);

	if (!copy)
		exit(99);
	memcpy(copy, data, len);
	take(ctx, (struct event){ EVENT_WRITE, offset, len, copy, 0 });
	return 0;
}

static int on_flush(void *ctx)
{
	take(ctx, (struct event){ .kind = EVENT_FLUSH });
	return 0;
}

static int on_discard(void *ctx, uint64_t offset, uint64_t len)
{
	take(ctx, (struct event){ EVENT_DISCARD, offset, len, NULL, 0 });
	return 0;
}

void log_mark(struct log *log)
{
	pthread_mutex_lock(&taking);
	log_put(log, log->n, (struct event){ .kind = EVENT_MARK });
	pthread_mutex_unlock(&taking);
}

struct btrkit_io *log_record(struct log *log, unsigned device, struct sparse *below)
{
	const struct btrkit_io_record_ops ops = { on_write, on_flush, on_discard };
	struct btrkit_io *io;

	log->taps[device] = (struct log_tap){ log, device };
	if (btrkit_io_record(sparse_io(below), &ops, &log->taps[device], &io, NULL))
		exit(99);
	return io;
}

void event_apply(const struct event *e, struct sparse *to, size_t sector, uint64_t mask)
{
	if (e->kind == EVENT_DISCARD)
		sparse_discard(to, e->offset, e->len);
	for (uint64_t at = 0, i = 0; e->kind == EVENT_WRITE && at < e->len; at += sector, i++)
		if (mask >> i % 64 & 1)
			sparse_write(to, e->offset + at, e->data + at, e->len - at < sector ? e->len - at : sector);
}

void log_apply(const struct event *e, size_t n, const struct disks *to)
{
	for (; n--; e++)
		event_apply(e, to->at[e->device], e->len ? e->len : 1, UINT64_MAX);
}
