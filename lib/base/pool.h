/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_POOL_H
#define BTRKIT_BASE_POOL_H

/* Memory in pieces that is given back all at once. */

#include <stddef.h>

struct pool {
	struct pool_piece *pieces;
	char *free;
	size_t left, next_size;
};

/* @return NULL: no memory. @align: a power of two, at most 8 */
void *pool_take(struct pool *p, size_t size, size_t align);
/* With a zero byte behind it. */
char *pool_copy(struct pool *p, const void *data, size_t len);
/* All of it: the pool is then as when it was zeroed. */
void pool_free(struct pool *p);

#endif
