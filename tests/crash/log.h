/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_LOG_H
#define BTRKIT_TESTS_CRASH_LOG_H

/* What reached the devices of a filesystem, in its order. */

#include "disks.h"

/* A mark is the writer's word that all before it is durable. */
enum event_kind { EVENT_WRITE, EVENT_DISCARD, EVENT_FLUSH, EVENT_MARK };

struct event {
	enum event_kind kind;
	uint64_t offset, len;
	uint8_t *data;	/* of a write */
	unsigned device;
};

struct log {
	struct event *events;
	size_t n, room;
	struct log_tap {
		struct log *log;
		unsigned device;
	} taps[DISKS_MAX];
};

/* Device number @device, over @below, that tells @log of all that reaches it. The log must stay where it is. */
struct btrkit_io *log_record(struct log *log, unsigned device, struct sparse *below);
void log_mark(struct log *log);
void log_release(struct log *log);

/* Takes an event out; puts it in before event number @at. */
struct event log_take(struct log *log, size_t at);
void log_put(struct log *log, size_t at, struct event e);

/* Lets an event happen, of a write only those sectors of @sector bytes for which @mask, repeated, has a bit. */
void event_apply(const struct event *e, struct sparse *to, size_t sector, uint64_t mask);

/* Lets all of @n events happen as a whole. */
void log_apply(const struct event *e, size_t n, const struct disks *to);

#endif
