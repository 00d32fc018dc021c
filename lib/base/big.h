/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_BIG_H
#define BTRKIT_BASE_BIG_H

/*
 * Large allocations: from BIG_MIN bytes on, memory is mapped directly and the kernel is asked for huge pages. With
 * normal pages, TLB misses would take about as long as the memory accesses themselves.
 */

#include <stddef.h>

#define BIG_MIN ((size_t)2 << 20)

/* Allocates @size zeroed bytes. @return NULL: out of memory */
void *big_take(size_t size);
/* @size is the size that was passed to big_take(). @p may be NULL. */
void big_free(void *p, size_t size);

#endif
