/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_BASE_POOL_H
#define BTRKIT_BASE_POOL_H

/* Allocations that are freed all at once. */

#include <stddef.h>
#include <stdint.h>

struct stock;

struct pool {
	struct pool_piece *pieces;
	char *free;
	size_t left, next_size;
	struct stock *stock; /* source of large pieces, may be NULL */
};

/* @align is a power of two, at most 8. @return NULL: out of memory */
void *pool_take(struct pool *p, size_t size, size_t align);
/* Like pool_take(), for an allocation that pool_release() may free. */
void *pool_take_marked(struct pool *p, size_t size, size_t align, uint64_t mark);
/*
 * Frees allocations with marks up to @mark, except those in a piece that also has one with a higher mark, and except
 * the current piece.
 */
void pool_release(struct pool *p, uint64_t mark);
/* Copies @len bytes and appends a null byte. */
char *pool_copy(struct pool *p, const void *data, size_t len);
/* Frees everything. The pool is then as it was initially. */
void pool_free(struct pool *p);

#endif
