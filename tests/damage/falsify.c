// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lists ways to falsify each field of every structure of a filesystem: superblocks, headers, pointers, items and their
 * contents. For each form of item in each tree, it uses the first one, one in the middle and the last one.
 *
 *	damage-falsify DEVICE...
 *
 * Prints a line for each value: what is set, a tab, and the bytes that change, as DEVICE@OFFSET:HEX separated by
 * blanks, for all copies, with valid checksums. Devices are counted from 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/volume/volume.h"
#include "tests/check/image.h"

#define DEVICES_MAX 8u
#define ITEMS_MAX 65536u
#define SECTOR 4096u

static struct btrkit_io *devices[DEVICES_MAX];
static unsigned num_devices;

/* An item or a node pointer of one kind in one tree, or a header. */
struct place {
	uint64_t owner, kind;
	uint8_t *block;
	uint64_t bytenr;
	uint32_t slot, nth, of; /* index of so many of its kind */
};

static struct place places[ITEMS_MAX];
static size_t num_places;

static const char *const values[] = { "0", "max", "+1", "-1", "+4096", "-4096", "other" };
#define VALUES (sizeof(values) / sizeof(values[0]))

/* The structure being changed. */
struct target {
	const struct place *place, *other; /* NULL: a superblock */
	unsigned device;		   /* of a superblock; num_devices: all devices */
	uint8_t *bytes;
	char tree[32], type[40];
	const char *prefix;
	unsigned nth; /* of its kind: 0 to 2 */
};

static uint64_t get(const uint8_t *at, uint32_t width)
{
	le64 v = { { 0 } };

	memcpy(v.b, at, width);
	return le64_get(v);
}

static void print_run(unsigned device, uint64_t offset, const uint8_t *bytes, size_t len)
{
	printf(" %u@%" PRIu64 ":", device, offset);
	for (size_t i = 0; i < len; i++)
		printf("%02x", bytes[i]);
}

static void print_super(const struct target *t, uint32_t at, uint32_t width)
{
	struct disk_super s;

	for (unsigned d = 0; d < num_devices; d++) {
		if (t->device != d && t->device != num_devices)
			continue;
		for (unsigned i = 0; i < SUPER_MIRRORS && super_offset(i) + SUPER_SIZE <= devices[d]->size; i++) {
			if (btrkit_io_read(devices[d], super_offset(i), &s, sizeof(s), NULL))
				die("cannot read a superblock");
			memcpy((uint8_t *)&s + at, t->bytes + at, width);
			image.fs->geometry.csum->compute(s.fsid, SUPER_SIZE - sizeof(s.csum), s.csum);
			print_run(d, super_offset(i), s.csum, sizeof(s.csum));
			print_run(d, super_offset(i) + at, t->bytes + at, width);
		}
	}
}

static void print_block(const struct target *t, uint32_t at, uint32_t width)
{
	const uint32_t size = image.fs->geometry.nodesize;
	uint8_t csum[CSUM_SIZE_MAX] = { 0 };
	struct copy copy;

	image.fs->geometry.csum->compute(t->bytes + CSUM_SIZE_MAX, size - CSUM_SIZE_MAX, csum);
	for (unsigned i = 0; !volume_map(image.fs->volume, t->place->bytenr, size, i, &copy, NULL); i++) {
		unsigned d = 0;

		while (d < num_devices && devices[d] != copy.io)
			d++;
		if (d == num_devices)
			die("a copy on no device");
		print_run(d, copy.physical, csum, sizeof(csum));
		print_run(d, copy.physical + at, t->bytes + at, width);
	}
}

/* That field in another structure of the kind; NULL if there is none. */
static const uint8_t *other_bytes(const struct target *t, const uint8_t *base, struct field f)
{
	uint8_t *data, *other = t->other ? t->other->block : NULL;
	uint32_t size, slot_size;

	if (!other)
		return NULL;
	if (base == t->bytes) {
		/* The block header, or the slot (item header or pointer) in a leaf or node. */
		slot_size = t->bytes[offsetof(struct disk_header, level)] ? sizeof(struct disk_key_ptr) :
									    sizeof(struct disk_item);
		return f.at < sizeof(struct disk_header) ?
			       other + f.at :
			       other + f.at + t->other->slot * slot_size - t->place->slot * slot_size;
	}
	if (!fields_slot_item(other, image.fs->geometry.nodesize, t->other->slot, &data, &size) ||
	    f.at + f.width > size)
		return NULL;
	return data + f.at;
}

/* Times and UUIDs differ from run to run; the chosen values must not depend on them. */
static bool is_chance(const char *field)
{
	return field && (strstr(field, "time") || strstr(field, "uuid"));
}

static void each_value(void *ctx, uint8_t *base, struct field f)
{
	struct target *t = ctx;
	const uint64_t max = f.width == 8 ? UINT64_MAX : (1ull << 8 * f.width) - 1, old = get(base + f.at, f.width);
	const uint8_t *other = other_bytes(t, base, f);
	const uint64_t is[VALUES] = { 0,
				      max,
				      old + 1,
				      old - 1,
				      f.width > 1 ? old + SECTOR : old,
				      f.width > 1 ? old - SECTOR : old,
				      other ? get(other, f.width) : old };
	uint8_t kept[8];

	/* Skip the checksum, which is updated anyway. */
	if (base == t->bytes && f.at < CSUM_SIZE_MAX)
		return;
	memcpy(kept, base + f.at, f.width);
	for (unsigned n = 0; n < VALUES; n++) {
		const le64 v = le64_put(is[n] & max);
		bool new = (is[n] & max) != old && !(n > 1 && is_chance(f.name));

		for (unsigned i = 0; i < n; i++)
			new &= (is[n] & max) != (is[i] & max);
		if (!new)
			continue;
		memcpy(base + f.at, v.b, f.width);
		printf("%s %s.%u %s%s %s\t", t->tree, t->type, t->nth, t->prefix, f.name ? f.name : "bytes", values[n]);
		if (t->place)
			print_block(t, (uint32_t)(base - t->bytes) + f.at, f.width);
		else
			print_super(t, f.at, f.width);
		putchar('\n');
	}
	memcpy(base + f.at, kept, f.width);
}

static void add_place(const struct place *new)
{
	struct place *p = &places[num_places++];

	if (num_places > ITEMS_MAX)
		die("too many items");
	*p = *new;
	for (size_t i = 0; i + 1 < num_places; i++)
		if (places[i].owner == p->owner && places[i].kind == p->kind)
			p->nth++;
}

static void take_block(uint64_t bytenr, uint8_t *block)
{
	const struct disk_header *h = (const struct disk_header *)block;
	struct place p = { .owner = le64_get(h->owner), .kind = h->level ? 1 : 0, .block = block, .bytenr = bytenr };

	add_place(&p);
	for (p.slot = 0; p.slot < fields_slots(block, image.fs->geometry.nodesize); p.slot++) {
		uint8_t *data;
		uint32_t size;
		const struct disk_key *at = fields_slot_item(block, image.fs->geometry.nodesize, p.slot, &data, &size);

		p.kind = 4096;
		if (at)
			p.kind = image_item_kind(at, data, size) << 1;
		else if (!h->level)
			continue;
		add_place(&p);
	}
}

static bool is_subvolume(uint64_t tree)
{
	return tree == OID_FS_TREE || (tree >= OID_FIRST_FREE && tree <= OID_LAST_FREE);
}

static void try_place(const struct place *p, const struct place *other)
{
	const struct disk_header *h = (const struct disk_header *)p->block;
	const unsigned nth = !p->nth ? 0 : p->nth == p->of / 2 ? 1 : 2;
	struct target t = { .place = p, .other = other, .bytes = p->block, .prefix = "", .nth = nth };
	struct disk_key copy;
	uint8_t *data;
	uint32_t size;
	const struct disk_key *at;

	/* Number subvolumes, because there are many. */
	snprintf(t.tree, sizeof(t.tree), is_subvolume(p->owner) ? "%s-%" PRIu64 : "%s", image_tree_name(p->owner),
		 p->owner);
	if (p->kind < 2) {
		snprintf(t.type, sizeof(t.type), h->level ? "NODE" : "LEAF");
		fields_of_header(p->block, each_value, &t);
		return;
	}
	at = fields_slot_item(p->block, image.fs->geometry.nodesize, p->slot, &data, &size);
	if (!at) {
		snprintf(t.type, sizeof(t.type), "POINTER");
		fields_of_slot(p->block, p->slot, each_value, &t);
		return;
	}
	copy = *at;
	image_type_name(&copy, data, size, t.type);
	t.prefix = "item.";
	fields_of_slot(p->block, p->slot, each_value, &t);
	t.prefix = "";
	fields_of_item(&copy, data, size, each_value, &t);
}

/* Tries the first, one in the middle and the last; @other is the next one, or the first. */
static void try_places(void)
{
	for (size_t i = 0; i < num_places; i++) {
		struct place *p = &places[i], *first = NULL, *next = NULL;

		for (size_t j = 0; j < num_places; j++) {
			if (places[j].owner != p->owner || places[j].kind != p->kind)
				continue;
			p->of++;
			if (!first)
				first = &places[j];
			if (j > i && !next)
				next = &places[j];
		}
		if (p->nth && p->nth != p->of / 2 && p->nth != p->of - 1)
			continue;
		try_place(p, next ? next : first);
	}
}

static void try_supers(void)
{
	struct disk_super disk;
	struct target super = { .bytes = (uint8_t *)&disk, .prefix = "", .type = "SUPER" };

	for (super.device = 0; super.device <= num_devices; super.device++) {
		const unsigned from = super.device % num_devices;

		/* With a single device, "all" is the same as the first. */
		if (super.device == num_devices && num_devices == 1)
			break;
		if (btrkit_io_read(devices[from], super_offset(0), &disk, sizeof(disk), NULL))
			die("cannot read a superblock");
		snprintf(super.tree, sizeof(super.tree), "%s",
			 super.device == num_devices ? "all" : super.device ? "second" : "first");
		fields_of_super(super.bytes, each_value, &super);
	}
}

int main(int argc, char **argv)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	image.name = argc > 1 ? argv[1] : "";
	if (argc < 2 || argc > (int)DEVICES_MAX)
		die("usage");
	for (int i = 1; i < argc; i++)
		if (btrkit_io_open(argv[i], BTRKIT_IO_READ, &devices[num_devices++], &err))
			die(err.message);
	if (btrkit_fs_open(devices, num_devices, NULL, &image.fs, &err))
		die(err.message);
	image_find_blocks();
	try_supers();
	for (size_t i = 0; i < image.num_blocks; i++) {
		const struct node_ref ref = { image.blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };
		uint8_t *block = malloc(image.fs->geometry.nodesize);

		if (block && !node_read_uncached(image.fs, &ref, block, NULL))
			take_block(image.blocks[i], block);
		else
			free(block);
	}
	try_places();
	btrkit_fs_close(image.fs);
	return fflush(stdout) || ferror(stdout);
}
