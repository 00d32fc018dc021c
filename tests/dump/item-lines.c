// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints items as dump-tree --format json does, one per line: the hand-built items of the unit tests, each variant that
 * a validator refuses, truncated items, and random damage. Usage: item-lines [hide]
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/format/items/render.h"
#include "tests/unit/items_files.h"
#include "tests/unit/items_space.h"
#include "tests/unit/items_trees.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RANDOM 20	/* damaged variants of each item */

static struct emit out;
static unsigned render_flags = RENDER_CSUM_ITEMS;

static int write_line(void *ctx, const void *data, size_t len)
{
	(void)ctx;
	return fwrite(data, 1, len, stdout) == len ? 0 : -1;
}

static void print(const struct btrkit_key *key, const void *data, uint32_t size, uint64_t incompat)
{
	const struct item_ctx ctx = {
		.sectorsize = 4096, .nodesize = 16384, .csum_size = 4, .incompat = incompat, .generation = GENERATION,
		.owner = 5,
	};
	const struct item_type *type = item_type_find(key);
	const struct item item = { *key, data, size };

	emit_object(&out, NULL);
	emit_str(&out, "kind", "", "item");
	emit_u64(&out, "tree", "", 5);
	emit_u64(&out, "bytenr", "", 0);
	emit_u64(&out, "level", "", 0);
	item_line_emit(&out, 0, key, 0, size);
	emit_object(&out, "item");
	if (type)
		type->render(&out, &ctx, &item, render_flags);
	else
		render_data(&out, "data", data, size, render_flags);
	emit_object_end(&out);
	emit_object_end(&out);
}

static void print_changed(const struct sample *s, const struct bad *b)
{
	const uint32_t size = b->what == BAD_SIZE ? (uint32_t)b->value : s->size;
	uint8_t *copy = calloc(1, size + 8u);
	uint64_t incompat = INCOMPAT | s->incompat;
	struct btrkit_key key = s->key;
	const le64 value = le64_put(b->value);

	if (!copy)
		abort();
	memcpy(copy, s->data, size < s->size ? size : s->size);
	if (b->what == BAD_BYTES)
		memcpy(copy + b->at, &value, b->width);
	else if (b->what == BAD_OBJECTID)
		key.objectid = b->value;
	else if (b->what == BAD_OFFSET)
		key.offset = b->value;
	else if (b->what == BAD_INCOMPAT)
		incompat = b->value;
	print(&key, copy, size, incompat);
	free(copy);
}

static void print_random(const struct sample *s, uint32_t *seed)
{
	uint8_t *copy = malloc(s->size + 1u);

	if (!copy)
		abort();
	memcpy(copy, s->data, s->size);
	for (int n = 0; n < 3 && s->size; n++) {
		*seed = *seed * 1664525 + 1013904223;
		copy[(*seed >> 8) % s->size] = *seed & 1 ? 0xff : (uint8_t)(*seed >> 24);
	}
	print(&s->key, copy, s->size, INCOMPAT | s->incompat);
	free(copy);
}

static void print_all(const struct sample *samples, size_t count)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < count; i++) {
		const struct sample *s = &samples[i];

		print(&s->key, s->data, s->size, INCOMPAT | s->incompat);
		for (const struct bad *b = s->bad; b && b->what != BAD_END; b++)
			print_changed(s, b);
		for (uint32_t size = 0; size < s->size; size += 1 + s->size / 24)
			print(&s->key, s->data, size, INCOMPAT | s->incompat);
		for (int n = 0; n < RANDOM; n++)
			print_random(s, &seed);
	}
}

int main(int argc, char **argv)
{
	const struct sample unknown = { .key = { 1, 99, 2 }, .data = "abc", .size = 3 };

	(void)argv;
	if (argc > 1)
		render_flags |= RENDER_HIDE_NAMES;
	if (emit_init(&out, EMIT_JSON, write_line, NULL))
		return 1;
	print_all(file_samples, COUNT(file_samples));
	print_all(tree_samples, COUNT(tree_samples));
	print_all(space_samples, COUNT(space_samples));
	print_all(&unknown, 1);
	return emit_finish(&out) ? 1 : 0;
}
