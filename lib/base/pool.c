// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/big.h"
#include "lib/base/stock.h"

#define PIECE_MIN ((size_t)16 << 10)
/* Largest piece that is not a huge page. */
#define PIECE_MAX ((size_t)512 << 10)
/* Pieces larger than this are taken from the stock, if there is one. */
#define PIECE_OF_STOCK_FROM ((size_t)64 << 10)

struct pool_piece {
	struct pool_piece *next;
	uint64_t mark; /* highest mark of the allocations in it */
	enum { PIECE_OF_HEAP, PIECE_BIG, PIECE_OF_STOCK } kind;
	uint64_t data[]; /* aligned for all allocations */
};

/* *size is set to the size of the piece. */
static struct pool_piece *new_piece(const struct pool *p, size_t *size)
{
	struct pool_piece *piece;

	*size = p->next_size;
	if (p->stock && *size > PIECE_OF_STOCK_FROM) {
		*size = SLICE_SIZE;
		piece = stock_take(p->stock);
		if (piece)
			piece->kind = PIECE_OF_STOCK;
	} else if (*size == BIG_MIN) {
		piece = big_take(*size);
		if (piece)
			piece->kind = PIECE_BIG;
	} else {
		piece = malloc(*size);
		if (piece)
			piece->kind = PIECE_OF_HEAP;
	}
	if (piece)
		piece->mark = 0;
	return piece;
}

static void free_piece(const struct pool *p, struct pool_piece *piece)
{
	if (piece->kind == PIECE_OF_HEAP)
		free(piece);
	else if (piece->kind == PIECE_OF_STOCK)
		stock_give(p->stock, piece);
	else
		big_free(piece, BIG_MIN);
}

/*
 * Start of the free space in a chunk. Without this offset, pools that fill at the same pace would write to addresses
 * with equal lower bits, for which the processor's cache has only a few lines.
 */
static size_t stagger(const struct pool_piece *piece)
{
	return (uintptr_t)piece / SLICE_ALIGN * 7 % 31 * 320;
}

/*
 * Gives a large allocation its own piece, so that the rest of the current piece is not wasted. The current piece stays
 * first in the list.
 */
static void *own_piece(struct pool *p, size_t size, uint64_t mark)
{
	struct pool_piece *piece, **at = p->pieces ? &p->pieces->next : &p->pieces;

	if (size > SIZE_MAX - sizeof(*piece))
		return NULL;
	piece = malloc(sizeof(*piece) + size);
	if (!piece)
		return NULL;
	piece->next = *at;
	piece->mark = mark;
	piece->kind = PIECE_OF_HEAP;
	*at = piece;
	return piece->data;
}

void *pool_take_marked(struct pool *p, size_t size, size_t align, uint64_t mark)
{
	size_t skip = -(uintptr_t)p->free & (align - 1);
	struct pool_piece *piece;
	size_t bytes;
	char *at;

	if (p->left < skip || p->left - skip < size) {
		if (size > PIECE_MIN / 4)
			return own_piece(p, size, mark);
		if (!p->next_size)
			p->next_size = PIECE_MIN;
		piece = new_piece(p, &bytes);
		if (!piece)
			return NULL;
		piece->next = p->pieces;
		p->pieces = piece;
		skip = piece->kind == PIECE_OF_STOCK ? stagger(piece) : 0;
		p->free = (char *)piece->data + skip;
		p->left = bytes - sizeof(*piece) - skip;
		p->next_size = p->next_size < PIECE_MAX ? p->next_size * 2 : BIG_MIN;
		skip = 0;
	}
	at = p->free + skip;
	p->free = at + size;
	p->left -= skip + size;
	if (p->pieces->mark < mark)
		p->pieces->mark = mark;
	return at;
}

void *pool_take(struct pool *p, size_t size, size_t align)
{
	return pool_take_marked(p, size, align, 0);
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

void pool_release(struct pool *p, uint64_t mark)
{
	struct pool_piece **at = p->pieces ? &p->pieces->next : &p->pieces;

	while (*at) {
		struct pool_piece *piece = *at;

		if (piece->mark > mark) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		free_piece(p, piece);
	}
}

void pool_free(struct pool *p)
{
	while (p->pieces) {
		struct pool_piece *next = p->pieces->next;

		free_piece(p, p->pieces);
		p->pieces = next;
	}
	*p = (struct pool){ .stock = p->stock };
}
