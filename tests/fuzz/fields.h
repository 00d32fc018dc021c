/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_TESTS_FUZZ_FIELDS_H
#define BTRKIT_TESTS_FUZZ_FIELDS_H

/* The fields of superblocks, tree blocks and items, and the values that they are set to. */

#include "lib/format/disk.h"

struct field {
	uint32_t at, width; /* in bytes */
	const char *name;   /* name of the member; NULL: unknown */
};

/* Called with a field of the structure at @base. */
typedef void (*field_fn)(void *ctx, uint8_t *base, struct field f);

void fields_of_super(uint8_t *super, field_fn fn, void *ctx);
/* Visits the header of a tree block. */
void fields_of_header(uint8_t *block, field_fn fn, void *ctx);
/* Visits the item header, or the key pointer, in @slot; it must be inside the block. */
void fields_of_slot(uint8_t *block, uint32_t slot, field_fn fn, void *ctx);
/* The key and data of the item in that slot; NULL: there is none, or it is not completely inside the block. */
const struct disk_key *fields_slot_item(uint8_t *block, uint32_t len, uint32_t slot, uint8_t **data, uint32_t *size);
/* The highest possible number of slots in the block. */
uint32_t fields_slots(const uint8_t *block, uint32_t len);
/* Visits the fields of an item, by the structs of its type; of the rest (names, data), the first and last bytes. */
void fields_of_item(const struct disk_key *key, uint8_t *data, uint32_t size, field_fn fn, void *ctx);
void fields_of_key(struct disk_key *key, field_fn fn, void *ctx);

/* 0, 1, the maximum, one less than that, a random value, one more, one less. */
#define FIELD_VALUES 7

/* Sets the field to value number @n. @return false: it had this value already */
bool field_set(uint8_t *base, struct field f, unsigned n, uint64_t random);

/* Pseudo-random numbers. */
static inline uint64_t fields_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

#endif
