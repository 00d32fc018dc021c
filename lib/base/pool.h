/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_POOL_H
#define BTRKIT_BASE_POOL_H

/* Memory in pieces that is given back all at once. */

#include <stddef.h>
#include <stdint.h>

struct stock;

struct pool {
	struct pool_piece *pieces;
	char *free;
	size_t left, next_size;
	struct stock *stock; /* where large pieces are from, if any */
};

/* @return NULL: no memory. @align: a power of two, at most 8 */
void *pool_take(struct pool *p, size_t size, size_t align);
/* The same for what is not wanted any more when all up to @mark is not. */
void *pool_take_marked(struct pool *p, size_t size, size_t align, uint64_t mark);
/* What was taken for marks up to @mark is given back, as far as nothing of a higher one lies beside it. */
void pool_release(struct pool *p, uint64_t mark);
/* With a zero byte behind it. */
char *pool_copy(struct pool *p, const void *data, size_t len);
/* All of it: the pool is then as it was at first. */
void pool_free(struct pool *p);

#endif
