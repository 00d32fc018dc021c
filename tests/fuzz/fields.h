/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_FIELDS_H
#define BTRKIT_TESTS_FUZZ_FIELDS_H

/* Each field of superblocks, tree blocks and items, and the values that it is set to. */

#include "lib/format/disk.h"

struct field {
	uint32_t at, width; /* bytes */
	const char *name;   /* as in the struct that it is a member of; NULL: none is known */
};

/* Is handed a field of what begins at @base. */
typedef void (*field_fn)(void *ctx, uint8_t *base, struct field f);

void fields_of_super(uint8_t *super, field_fn fn, void *ctx);
/* The header of a tree block. */
void fields_of_header(uint8_t *block, field_fn fn, void *ctx);
/* What a leaf, or a node, says in place @slot besides the bytes of the item; they must be in the block. */
void fields_of_slot(uint8_t *block, uint32_t slot, field_fn fn, void *ctx);
/* The item that such a place speaks of, and its bytes; NULL: it has none, or they are not all in the block. */
const struct disk_key *fields_slot_item(uint8_t *block, uint32_t len, uint32_t slot, uint8_t **data, uint32_t *size);
/* How many places the block can have. */
uint32_t fields_slots(const uint8_t *block, uint32_t len);
/* The fields of an item, by the structs of its type; what is left (names, data) by its first and last bytes. */
void fields_of_item(const struct disk_key *key, uint8_t *data, uint32_t size, field_fn fn, void *ctx);
void fields_of_key(struct disk_key *key, field_fn fn, void *ctx);

/* 0, 1, the largest, the one before, any, one more, one less. */
#define FIELD_VALUES 7

/* Sets the field to value number @n. @return false: it had that value */
bool field_set(uint8_t *base, struct field f, unsigned n, uint64_t random);

/* Reproducible numbers. */
static inline uint64_t fields_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

#endif
