/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_EACH_H
#define BTRKIT_BASE_EACH_H

/* Pieces of work that need nothing of each other, by several threads, of which the caller's is one. */

#include <stddef.h>

/* Ends when all are done. With less than @threads, or none, if they cannot be had. */
void each(size_t n, unsigned threads, void (*work)(void *ctx, size_t i), void *ctx);

/* As many threads as there are processors. */
unsigned each_processor(void);

#endif
