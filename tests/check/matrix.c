// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets each field of superblock, headers, pointers and items of good images to each of seven values, in all copies and
 * with valid checksums. check must find each change, unless it is in the list of harmless ones.
 *
 *	check-matrix [--all] [--every N] [--from I] [--list] [--write FILE] [--also FILE] HARMLESS IMAGE...
 *
 *	--all		every item, instead of one of each type in each tree
 *	--every N	only every Nth case
 *	--from I	start with case I
 *	--list		print a line for each case with the findings
 *	--write FILE	write a line for each case: image, change, findings and differing bytes, separated by tabs
 *	--also FILE	a second list of harmless changes
 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tree/cursor.h"
#include "tests/check/image.h"

#define SEEN_MAX 65536u
#define HARMLESS_MAX 1024u
#define MISSED_SHOWN 200u

static const char *const values[FIELD_VALUES] = { "0", "1", "max", "max-1", "random", "+1", "-1" };

struct harmless {
	char tree[32], type[40], field[64], value[40];
	uint64_t used;
};

static struct {
	bool all, list;
	FILE *write;
	uint64_t every, from, turn, random;
	uint64_t cases, found, unopened, harmless, missed;
	struct harmless rows[HARMLESS_MAX];
	size_t num_rows;
} run = { .every = 1 };

/* Of the current image. */
static uint64_t seen[SEEN_MAX];
static size_t num_seen;

/* The structure being changed. */
struct target {
	uint64_t bytenr; /* of a tree block; 0: the superblock */
	uint8_t *bytes;
	uint32_t size;
	const char *tree;
	char type[40];
	const char *prefix; /* of the field's name */
};

static bool is_harmless(const struct target *t, const char *field, const char *value)
{
	for (size_t i = 0; i < run.num_rows; i++) {
		struct harmless *h = &run.rows[i];

		if (fnmatch(h->tree, t->tree, 0) || fnmatch(h->type, t->type, 0) || fnmatch(h->field, field, 0) ||
		    fnmatch(h->value, value, 0))
			continue;
		h->used++;
		return true;
	}
	return false;
}

/* The image with the change applied. */
static struct sparse *changed(const struct target *t)
{
	struct sparse *disk = sparse_create(sparse_io(image.good)->size, image.good);
	uint8_t csum[CSUM_SIZE_MAX];

	memcpy(csum, t->bytes, sizeof(csum));
	if (t->bytenr)
		image_put_block(disk, t->bytenr, t->bytes);
	else
		image_put_super(disk, 0, t->bytes);
	memcpy(t->bytes, csum, sizeof(csum));
	return disk;
}

static void try_one(const struct target *t, const char *field, const char *value)
{
	struct sparse *disk = changed(t);
	char codes[CODES_ROOM];
	const int ret = image_check(disk, codes);
	const char *told = ret < 0 ? "not opened" : ret ? codes : "nothing";

	run.cases++;
	if (ret > 0) {
		run.found++;
	} else if (ret < 0) {
		run.unopened++;
	} else if (is_harmless(t, field, value)) {
		run.harmless++;
	} else if (run.missed++ < MISSED_SHOWN) {
		printf("missed: %s %s %s %s (block %" PRIu64 ", %s)\n", t->tree, t->type, field, value, t->bytenr,
		       image.name);
	}
	if (run.list)
		printf("%s %s %s %s %s: %s\n", image.name, t->tree, t->type, field, value, told);
	if (run.write) {
		fprintf(run.write, "%s\t%s %s %s %s\t%s\t", image.name, t->tree, t->type, field, value, told);
		sparse_print(disk, run.write);
		fputc('\n', run.write);
	}
	sparse_free(disk);
}

static void each_value(void *ctx, uint8_t *base, struct field f)
{
	struct target *t = ctx;
	uint8_t kept[8];
	char name[80];

	/* Skip the checksum, which is updated anyway. */
	if (base == t->bytes && f.at < CSUM_SIZE_MAX)
		return;
	snprintf(name, sizeof(name), "%s%s", t->prefix, f.name ? f.name : "bytes");
	memcpy(kept, base + f.at, f.width);
	for (unsigned n = 0; n < FIELD_VALUES; n++) {
		const uint64_t random = fields_next(&run.random);

		if (field_set(base, f, n, random)) {
			if (run.turn++ % run.every == run.from)
				try_one(t, name, values[n]);
		}
		memcpy(base + f.at, kept, f.width);
	}
}

/* Whether it is the first of its kind in its tree. */
static bool first(uint64_t owner, uint64_t kind)
{
	const uint64_t what = owner << 32 ^ kind;

	if (run.all)
		return true;
	for (size_t i = 0; i < num_seen; i++)
		if (seen[i] == what)
			return false;
	if (num_seen < SEEN_MAX)
		seen[num_seen++] = what;
	return true;
}

static void try_block(uint64_t bytenr, uint8_t *block)
{
	const struct disk_header *h = (const struct disk_header *)block;
	const uint64_t owner = le64_get(h->owner);
	struct target t = { bytenr, block, image.fs->geometry.nodesize, image_tree_name(owner), "", "" };

	if (first(owner, h->level ? 0 : 1)) {
		snprintf(t.type, sizeof(t.type), h->level ? "NODE" : "LEAF");
		fields_of_header(block, each_value, &t);
	}
	for (uint32_t slot = 0; slot < fields_slots(block, t.size); slot++) {
		struct disk_key copy;
		uint8_t *data;
		uint32_t size;
		const struct disk_key *at = fields_slot_item(block, t.size, slot, &data, &size);

		if (!at) {
			if (!first(owner, 4096 + (slot ? 1 : 0)))
				continue;
			snprintf(t.type, sizeof(t.type), "POINTER");
			fields_of_slot(block, slot, each_value, &t);
			continue;
		}
		if (!first(owner, image_item_kind(at, data, size)))
			continue;
		copy = *at;
		image_type_name(&copy, data, size, t.type);
		t.prefix = "item.";
		fields_of_slot(block, slot, each_value, &t);
		t.prefix = "";
		fields_of_item(&copy, data, size, each_value, &t);
	}
}

static void try_image(const char *path)
{
	struct target super = { 0, NULL, SUPER_SIZE, "super", "SUPER", "" };
	struct disk_super disk;

	image_open(path);
	num_seen = 0;
	/* The random choice must not depend on the other images. */
	run.random = 0;
	sparse_read(image.good, super_offset(0), &disk, sizeof(disk));
	super.bytes = (uint8_t *)&disk;
	fields_of_super(super.bytes, each_value, &super);
	for (size_t i = 0; i < image.num_blocks; i++) {
		const struct node_ref ref = { image.blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };
		uint8_t *block = malloc(image.fs->geometry.nodesize);

		if (block && !node_read_uncached(image.fs, &ref, block, NULL))
			try_block(image.blocks[i], block);
		free(block);
	}
	image_close();
}

/* Reads lines of tree, type, field and value, with wildcards, and the reason after "#". */
static void read_harmless(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		die("cannot open the list of harmless ones");
	while (fgets(line, sizeof(line), f)) {
		struct harmless *h = &run.rows[run.num_rows];

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (run.num_rows == HARMLESS_MAX || !strchr(line, '#') ||
		    sscanf(line, "%31s %39s %63s %39s", h->tree, h->type, h->field, h->value) != 4)
			die(line);
		run.num_rows++;
	}
	fclose(f);
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--all"))
			run.all = true;
		else if (!strcmp(argv[i], "--list"))
			run.list = true;
		else if (!strcmp(argv[i], "--every") && i + 1 < argc)
			run.every = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--from") && i + 1 < argc)
			run.from = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--write") && i + 1 < argc && !run.write)
			run.write = fopen(argv[++i], "w");
		else if (!strcmp(argv[i], "--also") && i + 1 < argc)
			read_harmless(argv[++i]);
		else
			die("bad option");
	}
	if (i + 1 >= argc || !run.every)
		die("usage");
	read_harmless(argv[i++]);
	for (; i < argc; i++)
		try_image(argv[i]);
	for (size_t j = 0; j < run.num_rows && run.all; j++)
		if (!run.rows[j].used)
			printf("harmless, and never met: %s %s %s %s\n", run.rows[j].tree, run.rows[j].type,
			       run.rows[j].field, run.rows[j].value);
	printf("%" PRIu64 " cases: %" PRIu64 " found, %" PRIu64 " not opened, %" PRIu64 " harmless, %" PRIu64
	       " missed\n",
	       run.cases, run.found, run.unopened, run.harmless, run.missed);
	if (run.write && fclose(run.write))
		die("cannot write the cases");
	return run.missed || !run.cases;
}
