// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How libFuzzer changes whole filesystems: mostly single fields, which it would hardly find by itself, sometimes bytes
 * of a block (in file data always), or the choices after the last record. The records themselves stay intact.
 */
#include "tests/fuzz/fields.h"
#include "tests/fuzz/fuzz.h"

#define CHOICES_MAX 96
#define RECORD 12 /* bytes before those of a block */
#define SUPER_AT 65536

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

struct block {
	uint64_t offset;
	uint8_t *bytes;
	uint32_t len;
};

/* A random choice among the visited fields. */
struct any {
	uint64_t state;
	uint64_t met;
	uint8_t *base;
	struct field field;
};

static bool block_next(uint8_t *data, size_t size, size_t *at, struct block *ret)
{
	le64 offset;
	le32 len;

	if (size - *at < RECORD)
		return false;
	memcpy(&offset, data + *at, sizeof(offset));
	memcpy(&len, data + *at + sizeof(offset), sizeof(len));
	*ret = (struct block){ le64_get(offset), data + *at + RECORD, le32_get(len) };
	if (ret->len < 4096 || ret->len > size - *at - RECORD)
		return false;
	*at += RECORD + ret->len;
	return true;
}

static void meet(void *ctx, uint8_t *base, struct field f)
{
	struct any *any = ctx;

	if (fields_next(&any->state) % ++any->met)
		return;
	any->base = base;
	any->field = f;
}

/* Chooses a field of any item, or seldom of the headers around it. */
static void meet_block(struct block *b, struct any *any)
{
	uint64_t kind = fields_next(&any->state) % 16;
	uint32_t slots = b->len >= sizeof(struct disk_header) ? fields_slots(b->bytes, b->len) : 0, slot, size;
	const struct disk_key *key;
	uint8_t *data;

	if (b->offset == SUPER_AT) {
		fields_of_super(b->bytes, meet, any);
		return;
	}
	if (kind == 0 || !slots) {
		fields_of_header(b->bytes, meet, any);
		return;
	}
	slot = (uint32_t)(fields_next(&any->state) % slots);
	key = fields_slot_item(b->bytes, b->len, slot, &data, &size);
	if (kind < 4 || !key || !size) {
		fields_of_slot(b->bytes, slot, meet, any);
	} else {
		struct disk_key copy = *key;

		fields_of_item(&copy, data, size, meet, any);
	}
}

static void mutate_field(struct block *b, struct any *any)
{
	unsigned n;

	meet_block(b, any);
	if (!any->met)
		return;
	n = (unsigned)(fields_next(&any->state) % (FIELD_VALUES + 1));
	if (n < FIELD_VALUES)
		field_set(any->base, any->field, n, fields_next(&any->state));
	else
		LLVMFuzzerMutate(any->base + any->field.at, any->field.width, any->field.width);
}

static size_t mutate_choices(uint8_t *data, size_t size, size_t max, size_t end)
{
	size_t room = max - end < CHOICES_MAX ? max - end : CHOICES_MAX;
	size_t len = size - end < room ? size - end : room;

	return room ? end + LLVMFuzzerMutate(data + end, len, room) : end;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct any any = { .state = seed };
	struct block block, chosen = { 0 };
	size_t at = 0, blocks = 0;
	uint64_t kind;

	while (block_next(data, size, &at, &block))
		if (!(fields_next(&any.state) % ++blocks))
			chosen = block;
	kind = fields_next(&any.state) % 32;
	if (!blocks || !kind)
		return LLVMFuzzerMutate(data, size, max);
	if (kind < 8)
		return mutate_choices(data, size, max, at);
	if (kind < 12 || chosen.offset & 1)
		LLVMFuzzerMutate(chosen.bytes, chosen.len, chosen.len);
	else
		mutate_field(&chosen, &any);
	return size;
}
