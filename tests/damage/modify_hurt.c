// SPDX-License-Identifier: LGPL-2.1-or-later
/* Damage for blocks: mostly wrong numbers in numeric fields, so that much of it looks plausible. */
#include "tests/damage/modify.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/le.h"
#include "lib/format/disk.h"

#define SUPER_AT 65536u
#define SUPER_BYTES 4096u

uint64_t hurt_number(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t n)
{
	return (size_t)(hurt_number(state) % n);
}

/* A number to replace @old: a boundary value, another number of the block, a nearby one, or any. */
static uint64_t wrong(const uint8_t *block, uint32_t size, uint64_t old, uint64_t *state)
{
	static const uint64_t edges[] = { 0,
					  1,
					  2,
					  5,
					  255,
					  256,
					  257,
					  0x1000,
					  0xffff,
					  0x7fffffff,
					  0xffffffff,
					  0x100000000ull,
					  1ull << 48,
					  0x7fffffffffffffffull,
					  1ull << 63,
					  0xffffffffffffffffull,
					  0xfffffffffffffffeull,
					  0xfffffffffffff000ull,
					  0xfffffffffffff001ull,
					  0xffffffffffffff00ull };
	le64 other;

	switch (below(state, 5)) {
	case 0:
	case 1:
		return edges[below(state, sizeof(edges) / sizeof(edges[0]))];
	case 2:
		memcpy(&other, block + below(state, size - 8), sizeof(other));
		return le64_get(other);
	case 3:
		return old + (below(state, 2) ? 1u : 4096u) * (below(state, 2) ? 1 : UINT64_MAX);
	default:
		return hurt_number(state);
	}
}

static void wrong_at(uint8_t *block, uint32_t size, size_t at, size_t bytes, uint64_t *state)
{
	le64 v = { { 0 } };

	if (at + bytes > size)
		return;
	memcpy(v.b, block + at, bytes);
	v = le64_put(wrong(block, size, le64_get(v), state));
	memcpy(block + at, v.b, bytes);
}

/* Removes an item without a trace. */
static void take_out(uint8_t *block, uint32_t size, uint32_t n, uint32_t slot)
{
	struct disk_header *h = (struct disk_header *)block;
	struct disk_item *items = (struct disk_item *)(h + 1);
	uint8_t *data = block + sizeof(*h);
	const uint32_t low = le32_get(items[n - 1].offset), from = le32_get(items[slot].offset);
	const uint32_t gone = le32_get(items[slot].size);

	if (n < 2 || low > from || from > size - sizeof(*h) || gone > size - sizeof(*h) - from)
		return;
	memmove(data + low + gone, data + low, from - low);
	for (uint32_t i = slot + 1; i < n; i++)
		items[i].offset = le32_put(le32_get(items[i].offset) + gone);
	memmove(&items[slot], &items[slot + 1], (n - slot - 1) * sizeof(*items));
	h->nritems = le32_put(n - 1);
}

static void hurt_leaf(uint8_t *block, uint32_t size, uint64_t *state)
{
	static const uint8_t widths[] = { 8, 8, 8, 4, 2, 1, 1 };
	const struct disk_header *h = (struct disk_header *)block;
	struct disk_item *items = (struct disk_item *)(h + 1);
	const uint32_t n = le32_get(h->nritems);
	const uint32_t slot = n ? (uint32_t)below(state, n) : 0;
	uint32_t at, len;

	if (!n || n > (size - sizeof(*h)) / sizeof(*items))
		return;
	at = (uint32_t)sizeof(*h) + le32_get(items[slot].offset);
	len = le32_get(items[slot].size);
	switch (below(state, 16)) {
	case 0:
		wrong_at(block, size, (size_t)((uint8_t *)&items[slot].key.offset - block), 8, state);
		break;
	case 1:
		wrong_at(block, size, (size_t)((uint8_t *)&items[slot] - block) + below(state, sizeof(*items)), 1,
			 state);
		break;
	case 2:
		/* The last item may have any higher key. */
		wrong_at(block, size, (size_t)((uint8_t *)&items[n - 1].key.objectid - block), 8, state);
		break;
	case 3:
	case 4:
		take_out(block, size, n, slot);
		break;
	default:
		if (len)
			wrong_at(block, size, at + below(state, len), widths[below(state, sizeof(widths))], state);
	}
}

static void hurt_inner(const struct base *b, uint8_t *block, uint64_t *state)
{
	const struct disk_header *h = (struct disk_header *)block;
	struct disk_key_ptr *ptrs = (struct disk_key_ptr *)(h + 1);
	const uint32_t n = le32_get(h->nritems);
	struct disk_key_ptr *p;

	if (!n || n > (b->nodesize - sizeof(*h)) / sizeof(*ptrs))
		return;
	p = &ptrs[below(state, n)];
	switch (below(state, 4)) {
	case 0:
		p->blockptr = le64_put(b->blocks[below(state, b->num_blocks)].logical);
		break;
	case 1:
		*p = ptrs[below(state, n)];
		break;
	default:
		wrong_at(block, b->nodesize, (size_t)((uint8_t *)p - block) + below(state, sizeof(*p)), 8, state);
	}
}

static void hurt_any(uint8_t *block, uint32_t size, uint64_t *state)
{
	const size_t at = 32 + below(state, size - 32 - 256), from = 32 + below(state, size - 32 - 256);

	switch (below(state, 3)) {
	case 0:
		block[at] ^= (uint8_t)(1u << below(state, 8));
		break;
	case 1:
		memset(block + at, 0, below(state, 256));
		break;
	default:
		memmove(block + at, block + from, below(state, 256));
	}
}

static void seal(uint8_t *block, uint32_t size)
{
	const le32 sum = le32_put(~crc32c(~0u, block + 32, size - 32));

	memcpy(block, &sum, sizeof(sum));
}

static void hurt_super(struct sparse *at, uint64_t *state)
{
	uint8_t super[SUPER_BYTES];

	sparse_read(at, SUPER_AT, super, sizeof(super));
	wrong_at(super, sizeof(super), 72 + below(state, 600), 8, state);
	seal(super, sizeof(super));
	sparse_write(at, SUPER_AT, super, sizeof(super));
}

static void hurt_block(const struct base *b, const struct base_block *which, struct sparse *at, uint64_t *state)
{
	uint8_t *block = malloc(b->nodesize);

	if (!block)
		exit(2);
	sparse_read(at, which->offset, block, b->nodesize);
	switch (below(state, 16)) {
	case 0:
		hurt_any(block, b->nodesize, state);
		break;
	case 1:
		/* Owner, generation, number of items or level. */
		wrong_at(block, b->nodesize, 80 + below(state, 21), 1u << below(state, 4), state);
		break;
	default:
		if (which->level)
			hurt_inner(b, block, state);
		else
			hurt_leaf(block, b->nodesize, state);
	}
	seal(block, b->nodesize);
	sparse_write(at, which->offset, block, b->nodesize);
	free(block);
}

void hurt(const struct base *b, struct sparse *at, uint64_t *state)
{
	for (size_t n = 1 + below(state, 5); n; n--) {
		if (!below(state, 60))
			hurt_super(at, state);
		else
			hurt_block(b, &b->blocks[below(state, b->num_blocks)], at, state);
	}
}
