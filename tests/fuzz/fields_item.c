// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets each field of an item of every type, and of its key, to each value, and passes it to the item target.
 * Usage: fields-item [DIR]
 * With a directory, the inputs are written there as files, as seeds for fuzzing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fields.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/samples.h"

/* As item.c reads them: crc32c with all checksums shown; another checksum; small nodes with hidden names; stripes. */
static const uint8_t choices[] = { 2 | 16, 4, 1 | 2 | 8, 2 | 32 };

struct run {
	const char *dir;
	struct disk_key key;
	uint32_t size;
	uint64_t random, fields, done;
};

static uint8_t data[65536];

static void write_seed(const struct run *r, const uint8_t *input, size_t size)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/field-%03u-%06llu", r->dir, r->key.type, (unsigned long long)r->done);
	f = fopen(path, "wb");
	if (!f || fwrite(input, 1, size, f) != size || fclose(f)) {
		fprintf(stderr, "fields-item: cannot write %s\n", path);
		exit(2);
	}
}

static void run(struct run *r)
{
	size_t size = 1 + sizeof(r->key) + r->size;
	uint8_t *input = malloc(size);

	if (!input)
		exit(2);
	memcpy(input + 1, &r->key, sizeof(r->key));
	memcpy(input + 1 + sizeof(r->key), data, r->size);
	input[0] = choices[0];
	if (r->dir)
		write_seed(r, input, size);
	for (size_t i = 0; i < sizeof(choices) && !r->dir; i++) {
		input[0] = choices[i];
		LLVMFuzzerTestOneInput(input, size);
	}
	r->done++;
	free(input);
}

static void each_value(void *ctx, uint8_t *base, struct field f)
{
	struct run *r = ctx;
	uint8_t kept[8];

	r->fields++;
	memcpy(kept, base + f.at, f.width);
	for (unsigned n = 0; n < FIELD_VALUES; n++) {
		if (field_set(base, f, n, fields_next(&r->random)))
			run(r);
		memcpy(base + f.at, kept, f.width);
	}
}

int main(int argc, char **argv)
{
	struct run r = { .dir = argc > 1 ? argv[1] : NULL };
	const struct sample *s;
	size_t samples = 0;

	for (; (s = sample_at(samples)); samples++) {
		struct disk_key key = key_put(&s->key);

		r.key = key;
		memcpy(data, s->data, s->size);
		/* The size is treated as a field too: one byte less, and one more. */
		for (r.size = s->size ? s->size - 1 : 0; r.size <= s->size + 1; r.size++)
			run(&r);
		r.size = s->size;
		fields_of_item(&key, data, r.size, each_value, &r);
		fields_of_key(&r.key, each_value, &r);
		memset(data, 0, s->size);
	}
	printf("%zu items, %llu fields, %llu inputs\n", samples, (unsigned long long)r.fields,
	       (unsigned long long)r.done);
	return 0;
}
