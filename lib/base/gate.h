/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_GATE_H
#define BTRKIT_BASE_GATE_H

/*
 * A gate that lets many threads in at the same time, until one closes it for exclusive use. The closing thread waits
 * for all threads inside to leave. Threads that arrive meanwhile wait outside, so the closing thread cannot starve.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/percpu.h"

struct gate_stripe {
	atomic_uint inside;
	char apart[PERCPU_APART];
};

struct gate {
	struct gate_stripe stripes[PERCPU_SLOTS];
	atomic_bool closed;
	pthread_mutex_t lock;
	pthread_cond_t opened, emptied;
};

void gate_init(struct gate *g);
/* No thread may be inside. */
void gate_destroy(struct gate *g);

void gate_enter(struct gate *g);
void gate_leave(struct gate *g); /* by the thread that entered */
/* Waits until no thread is inside, and keeps all others out until gate_open(). The caller must not be inside. */
void gate_close(struct gate *g);
void gate_open(struct gate *g);

#endif
