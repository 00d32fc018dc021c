/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_PERCPU_H
#define BTRKIT_BASE_PERCPU_H

/*
 * Counters that all threads update are split into stripes, so that processors do not compete for the same cache line. A
 * thread always uses the same stripe.
 */

#include <pthread.h>
#include <stdint.h>

#define PERCPU_SLOTS 32u
/* Padding that puts stripes on different cache lines. */
#define PERCPU_APART 64u

static inline unsigned percpu_slot(void)
{
	return (unsigned)((uint64_t)(uintptr_t)pthread_self() * 0x9e3779b97f4a7c15ull >> 32) % PERCPU_SLOTS;
}

#endif
