/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_STRIPE_H
#define BTRKIT_BASE_STRIPE_H

/*
 * What all threads count is counted in stripes, so that no two processors have to hand a line of memory to each other
 * and back for it. A thread has always the same stripe.
 */

#include <pthread.h>
#include <stdint.h>

#define STRIPES 32u
/* Bytes that keep neighbours out of each other's lines. */
#define STRIPE_APART 64u

static inline unsigned stripe_of_thread(void)
{
	return (unsigned)((uint64_t)(uintptr_t)pthread_self() * 0x9e3779b97f4a7c15ull >> 32) % STRIPES;
}

#endif
