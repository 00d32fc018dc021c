/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EACH_H
#define BTRKIT_BASE_EACH_H

/* Independent pieces of work, done by several threads including the caller's. */

#include <stddef.h>

/*
 * Calls @work for each number below @n, and returns when all calls have returned. If threads cannot be created, fewer
 * than @threads are used, in the worst case only the caller's.
 */
void each(size_t n, unsigned threads, void (*work)(void *ctx, size_t i), void *ctx);

/* Number of processors. */
unsigned each_processor(void);

#endif
