// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_MIN ((size_t)16 << 10)
#define PIECE_MAX ((size_t)1 << 20)

struct pool_piece {
	struct pool_piece *next;
	uint64_t data[]; /* aligned for all that is taken */
};

static void *new_piece(struct pool *p, size_t size)
{
	struct pool_piece *piece;

	if (size > SIZE_MAX - sizeof(*piece))
		return NULL;
	piece = malloc(sizeof(*piece) + size);
	if (!piece)
		return NULL;
	piece->next = p->pieces;
	p->pieces = piece;
	return piece->data;
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
	/* What is large gets a piece of its own, so that the rest of this one is not lost. */
	if (size > PIECE_MIN / 4)
		return new_piece(p, size);
	if (!p->next_size)
		p->next_size = PIECE_MIN;
	at = new_piece(p, p->next_size);
	if (!at)
		return NULL;
	p->free = at + size;
	p->left = p->next_size - size;
	if (p->next_size < PIECE_MAX)
		p->next_size *= 2;
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

		free(p->pieces);
		p->pieces = next;
	}
	*p = (struct pool){ 0 };
}
