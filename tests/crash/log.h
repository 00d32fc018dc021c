/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_CRASH_LOG_H
#define BTRKIT_TESTS_CRASH_LOG_H

/* Log of everything that reached the devices of a filesystem, in order. */

#include "disks.h"

/* A mark is set when the writer reports that everything before it is durable. */
enum event_kind { EVENT_WRITE, EVENT_DISCARD, EVENT_FLUSH, EVENT_MARK };

struct event {
	enum event_kind kind;
	uint64_t offset, len;
	uint8_t *data;	/* writes only */
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

/* Device number @device, over @below, that records all writes in @log. @log must stay at its address. */
struct btrkit_io *log_record(struct log *log, unsigned device, struct sparse *below);
void log_mark(struct log *log);
void log_release(struct log *log);

/* Removes an event; inserts one before event number @at. */
struct event log_take(struct log *log, size_t at);
void log_put(struct log *log, size_t at, struct event e);

/* Applies an event; of a write, only the sectors of @sector bytes whose bit is set in @mask (repeated). */
void event_apply(const struct event *e, struct sparse *to, size_t sector, uint64_t mask);

/* Applies @n events completely. */
void log_apply(const struct event *e, size_t n, const struct disks *to);

#endif
