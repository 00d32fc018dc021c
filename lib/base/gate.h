/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_GATE_H
#define BTRKIT_BASE_GATE_H

/*
 * A gate that many threads go through side by side, until one closes it to be alone. Who closes waits for those inside
 * to leave; who comes meanwhile waits outside, so that nobody waits for ever.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/base/stripe.h"

struct gate_stripe {
	atomic_uint inside;
	char apart[STRIPE_APART];
};

struct gate {
	struct gate_stripe stripes[STRIPES];
	atomic_bool closed;
	pthread_mutex_t lock;
	pthread_cond_t opened, emptied;
};

void gate_init(struct gate *g);
/* Nobody may be inside. */
void gate_destroy(struct gate *g);

void gate_enter(struct gate *g);
void gate_leave(struct gate *g); /* by the thread that entered */
/* From here to gate_open() nobody is inside. Not by who is inside. */
void gate_close(struct gate *g);
void gate_open(struct gate *g);

#endif
