// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/check/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/format/items/files/file_extent.h"
#include "lib/tree/edit_path.h"
#include "lib/volume/volume.h"
#include "tests/check/image.h"

#define WORDS_MAX 8u
#define ALL_COPIES (-1)

enum found {
	NOTHING,
	A_SUPER,
	A_HEADER, /* header of a tree block */
	A_SLOT	  /* a pointer or an item */
};

struct edit {
	struct sparse *disk;
	const char *step; /* for error messages */
	enum found found;
	unsigned device; /* whose superblocks are found, from 0 */
	int copy;	 /* of the superblock, or ALL_COPIES */
	uint64_t bytenr; /* of the block */
	uint32_t slot;
	uint8_t *bytes; /* the block, or the superblock */
};

static _Noreturn void refuse(const struct edit *e, const char *why)
{
	char message[300];

	snprintf(message, sizeof(message), "%s: %s", e->step, why);
	die(message);
}

static uint32_t nodesize(void)
{
	return image.fs->geometry.nodesize;
}

/* Finds the place of a copy of a tree block or of data. */
static bool device_range_of(uint64_t logical, uint32_t size, unsigned copy, uint64_t *at)
{
	struct copy c;

	if (volume_map(image.fs->volume, logical, size, copy, &c, NULL))
		return false;
	*at = image_place(&c);
	return true;
}

/* --- Finding --- */

/* Returns where a copy of the superblock of the current device is. */
static uint64_t super_at(const struct edit *e, unsigned copy)
{
	return image_device(e->device) + super_offset(copy);
}

static void find_device(struct edit *e, const char *number)
{
	const unsigned long n = strtoul(number, NULL, 10);

	if (!n || n > image.num_devices)
		refuse(e, "there is no such device");
	e->device = (unsigned)n - 1;
	e->found = NOTHING;
}

static void find_super(struct edit *e, const char *copy)
{
	e->found = A_SUPER;
	e->copy = copy ? atoi(copy) : ALL_COPIES;
	sparse_read(e->disk, super_at(e, copy ? (unsigned)e->copy : 0), e->bytes, SUPER_SIZE);
}

static void load(struct edit *e, uint64_t bytenr)
{
	uint64_t at;

	if (!device_range_of(bytenr, nodesize(), 0, &at))
		refuse(e, "the block lies nowhere");
	sparse_read(e->disk, at, e->bytes, nodesize());
	e->bytenr = bytenr;
}

/* Whether the slot is of the given type. */
static bool is_of(const struct edit *e, uint32_t slot, const char *type)
{
	const struct disk_key *key;
	uint8_t *data;
	uint32_t size;
	char name[40];

	key = fields_slot_item(e->bytes, nodesize(), slot, &data, &size);
	if (!key)
		return !strcmp(type, "POINTER");
	image_type_name(key, data, size, name);
	return !strcmp(name, type);
}

/* Finds the Nth item or pointer of a type in the given trees, in the order in which their blocks were found. */
static void find(struct edit *e, const char *tree, const char *type, const char *nth)
{
	unsigned long left = strtoul(nth, NULL, 10);

	for (size_t i = 0; i < image.num_blocks; i++) {
		const struct disk_header *h = (const struct disk_header *)e->bytes;

		load(e, image.blocks[i]);
		if (strcmp(image_tree_name(le64_get(h->owner)), tree))
			continue;
		e->found = A_HEADER;
		if (!strcmp(type, h->level ? "NODE" : "LEAF") && !left--)
			return;
		e->found = A_SLOT;
		for (e->slot = 0; e->slot < fields_slots(e->bytes, nodesize()); e->slot++)
			if (is_of(e, e->slot, type) && !left--)
				return;
	}
	refuse(e, "there is none");
}

static void save(struct edit *e)
{
	struct disk_super s;

	if (e->found != A_SUPER) {
		image_put_block(e->disk, e->bytenr, e->bytes);
	} else if (e->copy == ALL_COPIES) {
		image_put_super(e->disk, e->device, e->bytes);
	} else {
		memcpy(&s, e->bytes, sizeof(s));
		image.fs->geometry.csum->compute(s.fsid, SUPER_SIZE - sizeof(s.csum), s.csum);
		sparse_write(e->disk, super_at(e, (unsigned)e->copy), &s, sizeof(s));
	}
}

/* --- Numbers and fields --- */

/* "." is the old value; +, - and | modify it. */
static uint64_t number(const struct edit *e, const char *word, uint64_t old, uint64_t max)
{
	const bool relative = strchr("+-|", word[0]) && word[0];
	uint64_t value;
	char *end;

	if (!strcmp(word, "."))
		return old;
	if (!strncmp(word, "max", 3))
		return max - (word[3] == '-' ? strtoull(word + 4, NULL, 0) : 0);
	value = strtoull(word + relative, &end, 0);
	if (*end || end == word + relative)
		refuse(e, "that is no number");
	switch (word[0]) {
	case '+':
		return (old + value) & max;
	case '-':
		return (old - value) & max;
	case '|':
		return old | value;
	default:
		return value;
	}
}

/* Search for a field by name, the Nth with that name. */
struct search {
	const struct edit *e;
	const char *name, *prefix, *value;
	unsigned long left;
	bool done;
};

static void set_field(void *ctx, uint8_t *base, struct field f)
{
	struct search *s = ctx;
	const size_t prefix = strlen(s->prefix);
	uint64_t value = 0;

	if (s->done || strncmp(s->name, s->prefix, prefix) || strcmp(s->name + prefix, f.name ? f.name : "bytes") ||
	    s->left--)
		return;
	s->done = true;
	for (uint32_t i = 0; i < f.width; i++)
		value |= (uint64_t)base[f.at + i] << 8 * i;
	value = number(s->e, s->value, value, f.width == 8 ? UINT64_MAX : (1ull << 8 * f.width) - 1);
	for (uint32_t i = 0; i < f.width; i++)
		base[f.at + i] = (uint8_t)(value >> 8 * i);
}

static void set(struct edit *e, const char *field, const char *value, const char *nth)
{
	struct search s = { .e = e, .name = field, .prefix = "", .value = value, .left = strtoul(nth, NULL, 10) };
	const struct disk_key *key;
	struct disk_key copy;
	uint8_t *data;
	uint32_t size;

	if (e->found == NOTHING)
		refuse(e, "nothing was found");
	if (e->found == A_SUPER) {
		fields_of_super(e->bytes, set_field, &s);
	} else if (e->found == A_HEADER) {
		fields_of_header(e->bytes, set_field, &s);
	} else {
		key = fields_slot_item(e->bytes, nodesize(), e->slot, &data, &size);
		s.prefix = key ? "item." : "";
		fields_of_slot(e->bytes, e->slot, set_field, &s);
		s.prefix = "";
		if (key) {
			copy = *key;
			fields_of_item(&copy, data, size, set_field, &s);
		}
	}
	if (!s.done)
		refuse(e, "there is no such field");
	save(e);
}

/* --- Items --- */

/* The leaf of the current item. */
static struct node leaf_of(const struct edit *e)
{
	struct node n = { .data = e->bytes };

	if (e->found != A_SLOT)
		refuse(e, "no item was found");
	node_describe(&n, nodesize());
	if (n.level)
		refuse(e, "no item was found");
	return n;
}

/* Inserts an item with these bytes, or zeros, near the current item, and makes it the current one. */
static void put_in(struct edit *e, char **words, const void *data, uint32_t size)
{
	struct node leaf = leaf_of(e);
	const struct btrkit_key old = node_key(&leaf, e->slot);
	const struct btrkit_key key = KEY(number(e, words[0], old.objectid, UINT64_MAX),
					  (uint8_t)number(e, words[1], old.type, UINT8_MAX),
					  number(e, words[2], old.offset, UINT64_MAX));
	struct disk_item *items = (struct disk_item *)(e->bytes + sizeof(struct disk_header));
	uint8_t *to;
	bool exact;

	e->slot = node_lower_bound(&leaf, &key, &exact);
	if (exact || leaf_free(&leaf) < size + sizeof(*items))
		refuse(e, "the leaf has no room, or has that item");
	leaf_open(&leaf, e->slot, 1, size);
	items[e->slot].key = key_put(&key);
	items[e->slot].offset = le32_put((e->slot ? le32_get(items[e->slot - 1].offset) : leaf_room(leaf.size)) - size);
	items[e->slot].size = le32_put(size);
	to = e->bytes + sizeof(struct disk_header) + le32_get(items[e->slot].offset);
	if (data)
		memcpy(to, data, size);
	else
		memset(to, 0, size);
	save(e);
}

static void put_copy(struct edit *e, char **words)
{
	const struct node leaf = leaf_of(e);
	const struct item item = leaf_item(&leaf, e->slot);
	uint8_t *copy = malloc(item.size + 1u);

	if (!copy)
		refuse(e, "no memory");
	memcpy(copy, item.data, item.size);
	put_in(e, words, copy, item.size);
	free(copy);
}

/* Appends a second copy of its contents to the item. */
static void repeat(struct edit *e)
{
	struct node leaf = leaf_of(e);
	const uint32_t size = leaf_item(&leaf, e->slot).size;
	uint8_t *data;

	if (size > leaf_free(&leaf))
		refuse(e, "the leaf has no room");
	leaf_resize(&leaf, e->slot, 2 * size);
	data = (uint8_t *)(uintptr_t)leaf_item(&leaf, e->slot).data;
	memcpy(data + size, data, size);
	save(e);
}

/* Cuts off the end of the item's contents, or appends zeros. */
static void resize(struct edit *e, uint32_t size)
{
	struct node leaf = leaf_of(e);
	const uint32_t old = leaf_item(&leaf, e->slot).size;

	if (size > old && size - old > leaf_free(&leaf))
		refuse(e, "the leaf has no room");
	leaf_resize(&leaf, e->slot, size);
	if (size > old)
		memset((uint8_t *)(uintptr_t)leaf_item(&leaf, e->slot).data + old, 0, size - old);
	save(e);
}

static void set_one(struct edit *e, uint8_t *byte, const char *value)
{
	*byte = (uint8_t)number(e, value, *byte, UINT8_MAX);
	save(e);
}

/* Sets a byte of the superblock, or of the item's contents. */
static void set_byte(struct edit *e, uint64_t at, const char *value)
{
	struct node leaf;
	struct item item;

	if (e->found == A_SUPER && at < SUPER_SIZE) {
		set_one(e, e->bytes + at, value);
		return;
	}
	leaf = leaf_of(e);
	item = leaf_item(&leaf, e->slot);
	if (at >= item.size)
		refuse(e, "the item has no such byte");
	set_one(e, (uint8_t *)(uintptr_t)item.data + at, value);
}

static void take_out(struct edit *e)
{
	struct node leaf = leaf_of(e);

	leaf_close(&leaf, e->slot, 1);
	save(e);
	e->found = NOTHING;
}

/* --- Changing bytes of one copy --- */

static void flip(struct edit *e, uint64_t at)
{
	uint8_t byte;

	sparse_read(e->disk, at, &byte, 1);
	byte ^= 1;
	sparse_write(e->disk, at, &byte, 1);
}

/* Spoils a copy of the superblock, of the block, or of the current file extent's data. */
static void spoil(struct edit *e, unsigned copy, bool data)
{
	uint64_t at, logical = e->bytenr;
	struct node leaf;
	struct item item;

	if (e->found == NOTHING)
		refuse(e, "nothing was found");
	if (e->found == A_SUPER) {
		flip(e, super_at(e, copy) + offsetof(struct disk_super, csum));
		return;
	}
	if (data) {
		leaf = leaf_of(e);
		item = leaf_item(&leaf, e->slot);
		if (item.size < sizeof(struct disk_file_extent))
			refuse(e, "no file extent was found");
		logical = le64_get(((const struct disk_file_extent *)item.data)->disk_bytenr);
	}
	if (!device_range_of(logical, image.fs->geometry.sectorsize, copy, &at))
		refuse(e, "there is no such copy");
	flip(e, at);
}

static void do_step(struct edit *e, unsigned n, char **w)
{
	if (!strcmp(w[0], "super") && n <= 2)
		find_super(e, n > 1 ? w[1] : NULL);
	else if (!strcmp(w[0], "device") && n == 2)
		find_device(e, w[1]);
	else if (!strcmp(w[0], "at") && (n == 3 || n == 4))
		find(e, w[1], w[2], n > 3 ? w[3] : "0");
	else if (!strcmp(w[0], "set") && (n == 3 || n == 4))
		set(e, w[1], w[2], n > 3 ? w[3] : "0");
	else if (!strcmp(w[0], "copy") && n == 4)
		put_copy(e, w + 1);
	else if (!strcmp(w[0], "new") && n == 5)
		put_in(e, w + 1, NULL, (uint32_t)strtoul(w[4], NULL, 0));
	else if (!strcmp(w[0], "byte") && n == 3)
		set_byte(e, strtoul(w[1], NULL, 0), w[2]);
	else if (!strcmp(w[0], "repeat") && n == 1)
		repeat(e);
	else if (!strcmp(w[0], "resize") && n == 2)
		resize(e, (uint32_t)strtoul(w[1], NULL, 0));
	else if (!strcmp(w[0], "delete") && n == 1)
		take_out(e);
	else if (!strcmp(w[0], "spoil") && n == 2)
		spoil(e, (unsigned)strtoul(w[1], NULL, 10), false);
	else if (!strcmp(w[0], "spoil-data") && n == 2)
		spoil(e, (unsigned)strtoul(w[1], NULL, 10), true);
	else
		refuse(e, "that is no step");
}

void edit(struct sparse *disk, const char *steps)
{
	const size_t room = nodesize() > SUPER_SIZE ? nodesize() : SUPER_SIZE;
	struct edit e = { .disk = disk, .step = steps, .bytes = malloc(room) };
	char *all = strdup(steps), *next = all, *step, *word, *rest;

	if (!e.bytes || !all)
		refuse(&e, "no memory");
	while ((step = strsep(&next, ";"))) {
		char *words[WORDS_MAX];
		unsigned n = 0;

		for (word = strtok_r(step, " \n", &rest); word && n < WORDS_MAX; word = strtok_r(NULL, " \n", &rest))
			words[n++] = word;
		if (!n)
			refuse(&e, "an empty step");
		do_step(&e, n, words);
	}
	free(all);
	free(e.bytes);
}
