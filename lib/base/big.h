/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_BIG_H
#define BTRKIT_BASE_BIG_H

/*
 * Memory of which there is much: from BIG_MIN on it is asked of the kernel in huge pages. Otherwise finding it in the
 * page tables takes as long as finding it in memory.
 */

#include <stddef.h>

#define BIG_MIN ((size_t)2 << 20)

/* Zeroed. @return NULL: no memory */
void *big_take(size_t size);
/* @size: as it was asked for. NULL is allowed. */
void big_free(void *p, size_t size);

#endif
