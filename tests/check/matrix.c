// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sets each field of superblock, headers, pointers and items of good images to each of seven values, with good
 * checksums, on all copies, and has the check find it. What is not found must stand in a list of harmless ones.
 *
 *	check-matrix [--all] [--every N] [--from I] [--list] HARMLESS IMAGE...
 *	check-matrix --codes CODES IMAGE...
 *
 * --all: every item, not only one of each type in each tree; --every: only each Nth case, --from the Ith on;
 * --list: a line for each case with what was found; --codes: tries the cases of a list alone, each of which must be
 * told by a code, and all codes must be in the list
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/check.h>

#include "lib/format/items/file_extent.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"
#include "tests/crash/sparse.h"
#include "tests/fuzz/fields.h"

#define BLOCKS_MAX 65536u
#define SEEN_MAX 65536u
#define HARMLESS_MAX 1024u
#define MISSED_SHOWN 200u

static const char *const values[FIELD_VALUES] = { "0", "1", "max", "max-1", "random", "+1", "-1" };

struct harmless {
	char tree[32], type[40], field[64], value[40];
	uint64_t used;
};

/* A case by which a code is tried. */
struct coded {
	char code[48], image[64], tree[32], type[40], field[64], value[40];
	unsigned nth; /* of those that are called so in the image, from 0 */
	bool done;
};

static struct {
	bool all, list, codes;
	uint64_t every, from, turn, random;
	uint64_t cases, found, unopened, harmless, missed;
	struct harmless rows[HARMLESS_MAX];
	size_t num_rows;
	struct coded coded[HARMLESS_MAX];
	size_t num_coded;
} run = { .every = 1 };

/* The image at hand. */
static struct {
	const char *name;
	struct sparse *good;
	struct btrkit_fs *fs;
	uint64_t blocks[BLOCKS_MAX];
	size_t num_blocks;
	uint64_t seen[SEEN_MAX];
	size_t num_seen;
} image;

/* What is being changed. */
struct target {
	uint64_t bytenr; /* of a tree block; 0: the superblock */
	uint8_t *bytes;
	uint32_t size;
	const char *tree;
	char type[40];
	const char *prefix; /* of the field's name */
};

static void die(const char *what)
{
	fprintf(stderr, "check-matrix: %s: %s\n", image.name ? image.name : "", what);
	exit(1);
}

static const char *tree_name(uint64_t id)
{
	static const struct {
		uint64_t id;
		const char *name;
	} names[] = {
		{ OID_ROOT_TREE, "root" },
		{ OID_EXTENT_TREE, "extent" },
		{ OID_CHUNK_TREE, "chunk" },
		{ OID_DEV_TREE, "dev" },
		{ OID_CSUM_TREE, "csum" },
		{ OID_QUOTA_TREE, "quota" },
		{ OID_UUID_TREE, "uuid" },
		{ OID_FREE_SPACE_TREE, "free-space" },
		{ OID_BLOCK_GROUP_TREE, "block-group" },
		{ OID_DATA_RELOC_TREE, "data-reloc" },
		{ OID_TREE_RELOC, "reloc" },
		{ OID_TREE_LOG, "log" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == id)
			return names[i].name;
	return "files";
}

#define CODES_ROOM 4096u

/* Their names, one behind the other, each once. */
static int note_code(void *ctx, const struct btrkit_finding *f)
{
	char *codes = ctx;
	const size_t len = strlen(codes), name = strlen(f->code->name);

	if (len + name + 2 < CODES_ROOM && (len <= name || strcmp(codes + len - name, f->code->name)))
		snprintf(codes + len, CODES_ROOM - len, "%s%s", len ? " " : "", f->code->name);
	return 0;
}

/* @return 1: found, 0: not, -1: it could not be opened. @codes: of the findings */
static int judge(struct sparse *disk, char codes[CODES_ROOM])
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_check_result result;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_io *io = sparse_io(disk);
	struct btrkit_fs *fs;
	char line[BTRKIT_ERROR_LINE];
	int ret;

	codes[0] = '\0';
	how.flags = BTRKIT_OPEN_PARTIAL;
	if (btrkit_fs_open(&io, 1, &how, &fs, &err))
		return -1;
	opts.flags = BTRKIT_CHECK_DATA;
	opts.threads = 1;
	opts.finding = note_code;
	opts.ctx = codes;
	ret = btrkit_check(fs, &opts, &result, &err);
	if (ret)
		die(btrkit_error_format(&err, line, sizeof(line)));
	btrkit_fs_close(fs);
	return result.findings[0] + result.findings[1] + result.findings[2] ? 1 : 0;
}

static void put_block(struct sparse *disk, const struct target *t)
{
	struct copy copy;

	image.fs->super.csum->compute(t->bytes + CSUM_SIZE_MAX, t->size - CSUM_SIZE_MAX, t->bytes);
	for (unsigned i = 0; !volume_map(image.fs->volume, t->bytenr, t->size, i, &copy, NULL); i++)
		sparse_write(disk, copy.physical, t->bytes, t->size);
}

/* On every device there is one copy after the other; each says where it lies. */
static void put_super(struct sparse *disk, const struct target *t)
{
	struct disk_super s;
	le64 magic;

	for (unsigned i = 0; i < SUPER_MIRRORS; i++) {
		if (super_offset(i) + SUPER_SIZE > sparse_io(disk)->size)
			break;
		sparse_read(disk, super_offset(i) + offsetof(struct disk_super, magic), &magic, sizeof(magic));
		if (!le64_get(magic))
			continue;
		memcpy(&s, t->bytes, sizeof(s));
		if (i && le64_get(s.bytenr) == super_offset(0))
			s.bytenr = le64_put(super_offset(i));
		image.fs->super.csum->compute(s.fsid, SUPER_SIZE - sizeof(s.csum), s.csum);
		sparse_write(disk, super_offset(i), &s, sizeof(s));
	}
}

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

/* As judge(), of the image with what is changed in it now. */
static int judge_changed(const struct target *t, char codes[CODES_ROOM])
{
	struct sparse *disk = sparse_create(sparse_io(image.good)->size, image.good);
	uint8_t csum[CSUM_SIZE_MAX];
	int ret;

	memcpy(csum, t->bytes, sizeof(csum));
	if (t->bytenr)
		put_block(disk, t);
	else
		put_super(disk, t);
	memcpy(t->bytes, csum, sizeof(csum));
	ret = judge(disk, codes);
	sparse_free(disk);
	return ret;
}

static void try_codes(const struct target *t, const char *field, const char *value)
{
	char codes[CODES_ROOM];

	for (size_t i = 0; i < run.num_coded; i++) {
		struct coded *c = &run.coded[i];
		const char *at;

		if (c->done || !strstr(image.name, c->image) || strcmp(c->tree, t->tree) || strcmp(c->type, t->type) ||
		    strcmp(c->field, field) || strcmp(c->value, value) || c->nth--)
			continue;
		c->done = true;
		run.cases++;
		judge_changed(t, codes);
		at = strstr(codes, c->code);
		if (at && (!at[strlen(c->code)] || at[strlen(c->code)] == ' ')) {
			run.found++;
			continue;
		}
		run.missed++;
		printf("%s: %s %s %s %s is told as: %s\n", c->code, t->tree, t->type, field, value, codes);
	}
}

static void try_one(const struct target *t, const char *field, const char *value)
{
	char codes[CODES_ROOM];
	int ret = judge_changed(t, codes);

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
		printf("%s %s %s %s %s: %s\n", image.name, t->tree, t->type, field, value,
		       ret < 0 ? "not opened" :
		       ret     ? codes :
				 "nothing");
}

static void each_value(void *ctx, uint8_t *base, struct field f)
{
	struct target *t = ctx;
	uint8_t kept[8];
	char name[80];

	/* Checksums are made good. */
	if (base == t->bytes && f.at < CSUM_SIZE_MAX)
		return;
	snprintf(name, sizeof(name), "%s%s", t->prefix, f.name ? f.name : "bytes");
	memcpy(kept, base + f.at, f.width);
	for (unsigned n = 0; n < FIELD_VALUES; n++) {
		const uint64_t random = fields_next(&run.random);

		if (field_set(base, f, n, random)) {
			if (run.codes)
				try_codes(t, name, values[n]);
			else if (run.turn++ % run.every == run.from)
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
	for (size_t i = 0; i < image.num_seen; i++)
		if (image.seen[i] == what)
			return false;
	if (image.num_seen < SEEN_MAX)
		image.seen[image.num_seen++] = what;
	return true;
}

/* Items of one type that are of different forms. */
static uint64_t kind_of(const struct disk_key *key, const uint8_t *data, uint32_t size)
{
	const uint64_t special = le64_get(key->objectid) > OID_LAST_FREE || le64_get(key->objectid) < OID_FIRST_FREE;
	uint64_t form = 0;

	if (key->type == KEY_EXTENT_DATA)
		form = size > 53 ? 9 : data[20] | (uint64_t)data[16] << 4;
	if (key->type == KEY_EXTENT_ITEM || key->type == KEY_METADATA_ITEM)
		form = size > 24 ? data[size > 42 && data[16] & 2 ? 42 : 24] | (uint64_t)(size > 64) << 8 : 0;
	if (key->type == KEY_INODE_ITEM)
		form = data[53] >> 4;
	return 2 + ((uint64_t)key->type << 1 | special) * 4096 + form;
}

static void try_block(uint64_t bytenr, uint8_t *block)
{
	const struct disk_header *h = (const struct disk_header *)block;
	const uint64_t owner = le64_get(h->owner);
	struct target t = { bytenr, block, image.fs->items.nodesize, tree_name(owner), "", "" };

	if (first(owner, h->level ? 0 : 1)) {
		snprintf(t.type, sizeof(t.type), h->level ? "NODE" : "LEAF");
		fields_of_header(block, each_value, &t);
	}
	for (uint32_t slot = 0; slot < fields_slots(block, t.size); slot++) {
		const struct item_type *type;
		struct btrkit_key key;
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
		if (!first(owner, kind_of(at, data, size)))
			continue;
		copy = *at;
		key = key_get(&copy);
		type = item_type_find(&key);
		/* What lies behind the type of an inline extent is data. */
		if (key.type == KEY_EXTENT_DATA && size > FILE_EXTENT_INLINE_START - 1 &&
		    data[FILE_EXTENT_INLINE_START - 1] == FILE_EXTENT_INLINE)
			snprintf(t.type, sizeof(t.type), "INLINE_DATA");
		else if (type)
			snprintf(t.type, sizeof(t.type), "%s", type->name);
		else
			snprintf(t.type, sizeof(t.type), "%u", key.type);
		t.prefix = "item.";
		fields_of_slot(block, slot, each_value, &t);
		t.prefix = "";
		fields_of_item(&copy, data, size, each_value, &t);
	}
}

static bool add_block(uint64_t bytenr)
{
	for (size_t i = 0; i < image.num_blocks; i++)
		if (image.blocks[i] == bytenr)
			return false;
	if (image.num_blocks == BLOCKS_MAX)
		die("too many blocks");
	image.blocks[image.num_blocks++] = bytenr;
	return true;
}

/* All blocks of all trees, each once. */
static void find_blocks(void)
{
	struct cursor c;
	int ret;

	image.num_blocks = 0;
	add_block(image.fs->root_tree.bytenr);
	add_block(image.fs->chunk_tree.bytenr);
	if (image.fs->super.log_root)
		add_block(image.fs->super.log_root);
	cursor_init(&c, image.fs, &image.fs->root_tree);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(&c, NULL)) {
		struct root_item root;

		if (c.item.key.type == KEY_ROOT_ITEM && root_item_read(&c.item, &root))
			add_block(root.bytenr);
	}
	cursor_release(&c);
	for (size_t i = 0; i < image.num_blocks; i++) {
		const struct node_ref ref = { image.blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };
		struct node *n;

		if (node_get(image.fs, &ref, &n, NULL))
			continue; /* of a tree that is partly gone */
		for (uint32_t j = 0; n->level && j < n->nritems; j++)
			add_block(le64_get(node_ptrs(n)[j].blockptr));
		node_put(image.fs, n);
	}
}

static void try_image(const char *path)
{
	struct btrkit_io *io;
	struct target super = { 0, NULL, SUPER_SIZE, "super", "SUPER", "" };
	struct disk_super disk;
	char codes[CODES_ROOM];

	image.name = path;
	image.num_seen = 0;
	/* The same ones whatever other images there are. */
	run.random = 0;
	image.good = sparse_import(path);
	if (judge(image.good, codes))
		die(codes);
	io = sparse_io(image.good);
	if (btrkit_fs_open(&io, 1, NULL, &image.fs, NULL))
		die("cannot be opened");
	sparse_read(image.good, super_offset(0), &disk, sizeof(disk));
	super.bytes = (uint8_t *)&disk;
	fields_of_super(super.bytes, each_value, &super);
	find_blocks();
	for (size_t i = 0; i < image.num_blocks; i++) {
		const struct node_ref ref = { image.blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };
		uint8_t *block = malloc(image.fs->items.nodesize);

		if (block && !node_read_alone(image.fs, &ref, block, NULL))
			try_block(image.blocks[i], block);
		free(block);
	}
	btrkit_fs_close(image.fs);
	sparse_free(image.good);
}

/* Lines of a tree, a type, a field and a value, with wildcards, and behind "#" the reason. */
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

/* Lines of a code, part of an image's name, tree, type, field, value and number; or of a code, "-", and why. */
static void read_codes(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f)
		die("cannot open the list of codes");
	while (fgets(line, sizeof(line), f)) {
		struct coded *c;
		int n;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (run.num_coded == HARMLESS_MAX)
			die("too many codes");
		c = &run.coded[run.num_coded];
		n = sscanf(line, "%47s %63s %31s %39s %63s %39s %u", c->code, c->image, c->tree, c->type, c->field,
			   c->value, &c->nth);
		c->done = n > 2 && !strcmp(c->image, "-");
		if (n != 7 && !c->done)
			die(line);
		run.num_coded++;
	}
	fclose(f);
}

/* @return how many codes are in no line, and cases in no image */
static uint64_t judge_codes(void)
{
	size_t n;
	const struct btrkit_check_code *codes = btrkit_check_codes(&n);
	uint64_t lacking = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		while (j < run.num_coded && strcmp(run.coded[j].code, codes[i].name))
			j++;
		if (j == run.num_coded) {
			printf("%s: is tried by no case\n", codes[i].name);
			lacking++;
		}
	}
	for (size_t j = 0; j < run.num_coded; j++) {
		if (run.coded[j].done)
			continue;
		printf("%s: there is no such case in %s\n", run.coded[j].code, run.coded[j].image);
		lacking++;
	}
	return lacking;
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--all"))
			run.all = true;
		else if (!strcmp(argv[i], "--codes"))
			run.codes = true;
		else if (!strcmp(argv[i], "--list"))
			run.list = true;
		else if (!strcmp(argv[i], "--every") && i + 1 < argc)
			run.every = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--from") && i + 1 < argc)
			run.from = strtoull(argv[++i], NULL, 10);
		else
			die("bad option");
	}
	if (i + 1 >= argc || !run.every)
		die("usage");
	if (run.codes)
		read_codes(argv[i++]);
	else
		read_harmless(argv[i++]);
	for (; i < argc; i++)
		try_image(argv[i]);
	if (run.codes)
		run.missed += judge_codes();
	for (size_t j = 0; j < run.num_rows && run.all; j++)
		if (!run.rows[j].used)
			printf("harmless, and never met: %s %s %s %s\n", run.rows[j].tree, run.rows[j].type,
			       run.rows[j].field, run.rows[j].value);
	printf("%" PRIu64 " cases: %" PRIu64 " found, %" PRIu64 " not opened, %" PRIu64 " harmless, %" PRIu64
	       " missed\n",
	       run.cases, run.found, run.unopened, run.harmless, run.missed);
	return run.missed || !run.cases;
}
