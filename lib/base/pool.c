// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/big.h"

#define PIECE_MIN ((size_t)16 << 10)
/* The largest but for huge pages. */
#define PIECE_MAX ((size_t)512 << 10)

struct pool_piece {
	struct pool_piece *next;
	size_t big; /* its size if it is a huge page, else 0 */
	uint64_t data[]; /* aligned for all that is taken */
};

static void *add_piece(struct pool *p, struct pool_piece *piece, size_t big)
{
	if (!piece)
		return NULL;
	piece->next = p->pieces;
	piece->big = big;
	p->pieces = piece;
	return piece->data;
}

/* What is large gets a piece of its own, so that the rest of another is not lost. */
static void *own_piece(struct pool *p, size_t size)
{
	return size > SIZE_MAX - sizeof(struct pool_piece) ? NULL :
							     add_piece(p, malloc(sizeof(struct pool_piece) + size), 0);
}

static void *new_piece(struct pool *p, size_t size)
{
	return size < BIG_MIN ? add_piece(p, malloc(size), 0) : add_piece(p, big_take(size), size);
}

void *pool_take(struct pool *p, size_t size, size_t align)
{
	const size_t skip = -(uintptr_t)p->free & (align - 1);
	char *at;

	if (p->left >= skip && p->left - skip >= size) {
		at = p->free + skip;
		p->free = at + size;
		p->left -= skip + size;
		return at;
	}
	if (size > PIECE_MIN / 4)
		return own_piece(p, size);
	if (!p->next_size)
		p->next_size = PIECE_MIN;
	at = new_piece(p, p->next_size);
	if (!at)
		return NULL;
	p->free = at + size;
	p->left = p->next_size - sizeof(struct pool_piece) - size;
	p->next_size = p->next_size < PIECE_MAX ? p->next_size * 2 : BIG_MIN;
	return at;
}

char *pool_copy(struct pool *p, const void *data, size_t len)
{
	char *copy = pool_take(p, len + 1, 1);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}

void pool_free(struct pool *p)
{
	while (p->pieces) {
		struct pool_piece *next = p->pieces->next;

		if (p->pieces->big)
			big_free(p->pieces, p->pieces->big);
		else
			free(p->pieces);
		p->pieces = next;
	}
	*p = (struct pool){ 0 };
}
