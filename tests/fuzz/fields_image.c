// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets each field of whole filesystems to each value, and passes them to a target, which corrects the checksums. The
 * fields are those of the superblock, of the headers of tree blocks, and of one item of each type in each tree, with
 * its key and item header.
 * Usage: fields-TARGET [--samples|--types] [--every N] FILE...
 * With --samples, a leaf of a file tree has a good item of every type instead of its own, and only those are changed.
 * With --types, only one item of each type is changed, in whichever tree it is. With --every, only each Nth value is
 * tried.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/format/ids.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/samples.h"

#define SECONDS_EACH 20
#define BYTES_MAX (1u << 20)
#define MEMORY_MAX (1ull << 30)
#define SUPER_AT 65536
#define SEEN_MAX 4096

static uint8_t image[BYTES_MAX];

static struct run {
	bool samples, types;
	uint64_t every, turn;
	size_t size;
	uint64_t random, fields, done;
	struct {
		uint64_t owner;
		unsigned what;
	} seen[SEEN_MAX];
	size_t num_seen;
} run;

static void each_value(void *ctx, uint8_t *base, struct field f)
{
	uint8_t kept[8];

	(void)ctx;
	run.fields++;
	memcpy(kept, base + f.at, f.width);
	for (unsigned n = 0; n < FIELD_VALUES; n++) {
		if (field_set(base, f, n, fields_next(&run.random)) && !(run.turn++ % run.every)) {
			alarm(SECONDS_EACH);
			LLVMFuzzerTestOneInput(image, run.size);
			run.done++;
		}
		memcpy(base + f.at, kept, f.width);
	}
}

/* Whether this is the first one of its kind. */
static bool first(const uint8_t *block, unsigned what)
{
	const struct disk_header *h = (const struct disk_header *)block;
	uint64_t owner = run.types ? 0 : le64_get(h->owner);

	for (size_t i = 0; i < run.num_seen; i++)
		if (run.seen[i].owner == owner && run.seen[i].what == what)
			return false;
	if (run.num_seen < SEEN_MAX) {
		run.seen[run.num_seen].owner = owner;
		run.seen[run.num_seen++].what = what;
	}
	return true;
}

static void set_slots(uint8_t *block, uint32_t len)
{
	uint32_t slots = fields_slots(block, len), size;
	uint8_t *data;

	for (uint32_t slot = 0; slot < slots; slot++) {
		const struct disk_key *at = fields_slot_item(block, len, slot, &data, &size);
		struct disk_key key;

		if (at)
			key = *at;
		/* Inline file extents count as a separate kind. */
		if (!run.samples && !first(block, at ? (unsigned)key.type << 8 | (unsigned)(size > 53) : 1))
			continue;
		fields_of_slot(block, slot, each_value, NULL);
		if (at)
			fields_of_item(&key, data, size, each_value, NULL);
	}
}

static void set_block(uint64_t offset, uint8_t *block, uint32_t len)
{
	const struct disk_header *h = (const struct disk_header *)block;

	if (offset & 1)
		return;
	if (offset == SUPER_AT) {
		if (!run.samples && !run.types)
			fields_of_super(block, each_value, NULL);
		return;
	}
	if (run.samples) {
		if (le64_get(h->owner) != OID_FS_TREE || h->level || !first(block, 0))
			return;
		if (!samples_leaf(block, len)) {
			fprintf(stderr, "fields: a leaf of %u bytes has no room for the items\n", len);
			exit(1);
		}
	} else if (!run.types && first(block, (unsigned)h->level << 16)) {
		fields_of_header(block, each_value, NULL);
	}
	set_slots(block, len);
}

static void set_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t at = 0;

	run.size = f ? fread(image, 1, sizeof(image), f) : 0;
	if (f)
		fclose(f);
	while (run.size > 12 && at < run.size - 12) {
		le64 offset;
		le32 len;

		memcpy(&offset, image + at, sizeof(offset));
		memcpy(&len, image + at + 8, sizeof(len));
		at += 12;
		if (le32_get(len) > run.size - at)
			break;
		set_block(le64_get(offset), image + at, le32_get(len));
		at += le32_get(len);
	}
}

int main(int argc, char **argv)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	int at = 1;

	run.samples = argc > 1 && !strcmp(argv[1], "--samples");
	run.types = argc > 1 && !strcmp(argv[1], "--types");
	run.every = 1;
	at += run.samples || run.types;
	if (at + 1 < argc && !strcmp(argv[at], "--every")) {
		run.every = strtoull(argv[at + 1], NULL, 10);
		at += 2;
	}
	if (!run.every)
		return 2;
	/* Sanitizers reserve far more address space than this limit. */
	if (!getenv("ASAN_OPTIONS"))
		setrlimit(RLIMIT_AS, &memory);
	while (at < argc)
		set_file(argv[at++]);
	printf("%llu fields, %llu values: no crash, no hang, less than a gigabyte of memory\n",
	       (unsigned long long)run.fields, (unsigned long long)run.done);
	return !run.done;
}
