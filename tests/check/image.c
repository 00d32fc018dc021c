// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/check/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/check.h>

#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/root.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"

#define DEVICES_MAX 8u

struct image image;

void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", image.name ? image.name : "", what);
	exit(1);
}

const char *image_tree_name(uint64_t id)
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

void image_type_name(const struct disk_key *key, const uint8_t *data, uint32_t size, char ret[40])
{
	const struct btrkit_key k = key_get(key);
	const struct item_type *type = item_type_find(&k);
	const struct disk_file_extent *extent = (const struct disk_file_extent *)data;

	/* After its type, an inline extent contains data. */
	if (k.type == KEY_EXTENT_DATA && size > FILE_EXTENT_INLINE_START - 1 &&
	    data[FILE_EXTENT_INLINE_START - 1] == FILE_EXTENT_INLINE)
		snprintf(ret, 40, "INLINE_DATA");
	else if (k.type == KEY_EXTENT_DATA && size >= sizeof(*extent) && !le64_get(extent->disk_bytenr))
		snprintf(ret, 40, "HOLE");
	else if (type)
		snprintf(ret, 40, "%s", type->name);
	else
		snprintf(ret, 40, "%u", k.type);
}

uint64_t image_item_kind(const struct disk_key *key, const uint8_t *data, uint32_t size)
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

/* Appends the code to the list, separated by blanks, unless it was the last one. */
static int note_code(void *ctx, const struct btrkit_finding *f)
{
	char *codes = ctx;
	const size_t len = strlen(codes), name = strlen(f->code->name);

	if (len + name + 2 < CODES_ROOM && (len < name || strcmp(codes + len - name, f->code->name)))
		snprintf(codes + len, CODES_ROOM - len, "%s%s", len ? " " : "", f->code->name);
	return 0;
}

/* --- Devices --- */

/* A device that is a part of the image. */
struct window {
	struct btrkit_io io;
	struct sparse *disk;
	uint64_t start;
};

static int window_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	const struct window *w = (const struct window *)io;

	sparse_read(w->disk, w->start + offset, buf, len);
	return 0;
}

static void window_close(struct btrkit_io *io)
{
	free(io);
}

uint64_t image_device(unsigned number)
{
	return number * image.device_size;
}

uint64_t image_place(const struct copy *c)
{
	return image_device((unsigned)c->devid - 1) + c->physical;
}

/* Of several devices, those without the magic of the primary superblock are missing. */
static bool is_missing(struct sparse *disk, unsigned number)
{
	le64 magic;

	sparse_read(disk, image_device(number) + super_offset(0) + offsetof(struct disk_super, magic), &magic,
		    sizeof(magic));
	return image.num_devices > 1 && !le64_get(magic);
}

static struct btrkit_io *open_window(struct sparse *disk, unsigned number)
{
	static const struct btrkit_io_ops ops = { .read = window_read, .close = window_close };
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		die("no memory");
	w->io.ops = &ops;
	w->io.size = image.device_size;
	w->disk = disk;
	w->start = image_device(number);
	snprintf(w->io.name, sizeof(w->io.name), "device %u", number + 1);
	return &w->io;
}

static int open_devices(struct sparse *disk, const struct btrkit_open_options *how, struct btrkit_fs **fs,
			struct btrkit_error *err)
{
	struct btrkit_io *ios[DEVICES_MAX] = { NULL };
	unsigned n = 0;
	int ret;

	for (unsigned i = 0; i < image.num_devices; i++)
		if (!is_missing(disk, i))
			ios[n++] = open_window(disk, i);
	ret = btrkit_fs_open(ios, n, how, fs, err);
	while (ret && n)
		btrkit_io_close(ios[--n]);
	return ret;
}

/* Finds out how many devices the image has, from its first superblock. */
static void find_devices(void)
{
	struct disk_super s;

	sparse_read(image.good, super_offset(0), &s, sizeof(s));
	image.num_devices = (unsigned)le64_get(s.num_devices);
	if (!image.num_devices || image.num_devices > DEVICES_MAX)
		die("too many devices");
	image.device_size = sparse_io(image.good)->size / image.num_devices;
}

int image_check(struct sparse *disk, char codes[CODES_ROOM])
{
	struct btrkit_open_options how = BTRKIT_OPEN_OPTIONS_INIT;
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_check_result result;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs;
	char line[BTRKIT_ERROR_LINE];
	int ret;

	codes[0] = '\0';
	how.flags = BTRKIT_OPEN_PARTIAL;
	if (open_devices(disk, &how, &fs, &err))
		return -1;
	opts.flags = BTRKIT_CHECK_DATA;
	opts.threads = 1;
	opts.finding = note_code;
	opts.ctx = codes;
	ret = btrkit_check(fs, &opts, &result, &err);
	btrkit_fs_close(fs);
	if (ret == -EOPNOTSUPP)
		return -2;
	if (ret)
		die(btrkit_error_format(&err, line, sizeof(line)));
	return result.findings[0] + result.findings[1] + result.findings[2] ? 1 : 0;
}

void image_put_block(struct sparse *disk, uint64_t bytenr, uint8_t *block)
{
	const uint32_t size = image.fs->geometry.nodesize;
	struct copy copy;

	image.fs->geometry.csum->compute(block + CSUM_SIZE_MAX, size - CSUM_SIZE_MAX, block);
	for (unsigned i = 0; !volume_map(image.fs->volume, bytenr, size, i, &copy, NULL); i++)
		sparse_write(disk, image_place(&copy), block, size);
}

/* Each device has several copies. */
void image_put_super(struct sparse *disk, unsigned device, const uint8_t *super)
{
	struct disk_super s;
	le64 magic;

	for (unsigned i = 0; i < SUPER_MIRRORS; i++) {
		const uint64_t at = image_device(device) + super_offset(i);

		if (super_offset(i) + SUPER_SIZE > image.device_size)
			break;
		sparse_read(disk, at + offsetof(struct disk_super, magic), &magic, sizeof(magic));
		if (!le64_get(magic))
			continue;
		memcpy(&s, super, sizeof(s));
		if (i && le64_get(s.bytenr) == super_offset(0))
			s.bytenr = le64_put(super_offset(i));
		image.fs->geometry.csum->compute(s.fsid, SUPER_SIZE - sizeof(s.csum), s.csum);
		sparse_write(disk, at, &s, sizeof(s));
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

/* Adds the child of a node, or, in the log root tree, a log tree of a subvolume. */
static void add_child(const struct node *n, uint32_t slot)
{
	struct root_item root;
	struct item item;

	if (n->level) {
		add_block(le64_get(node_ptrs(n)[slot].blockptr));
		return;
	}
	item = leaf_item(n, slot);
	if (n->owner == OID_TREE_LOG && item.key.type == KEY_ROOT_ITEM && root_item_read(&item, &root))
		add_block(root.bytenr);
}

void image_find_blocks(void)
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
			continue; /* tree whose deletion has begun */
		for (uint32_t j = 0; j < n->nritems; j++)
			add_child(n, j);
		node_put(image.fs, n);
	}
}

void image_open(const char *path)
{
	char codes[CODES_ROOM];

	image.name = path;
	image.good = sparse_import(path);
	find_devices();
	if (image_check(image.good, codes))
		die(codes);
	if (open_devices(image.good, NULL, &image.fs, NULL))
		die("cannot be opened");
	image_find_blocks();
}

void image_close(void)
{
	btrkit_fs_close(image.fs);
	sparse_free(image.good);
}
