// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Puts one contradiction at a time into a good image, with valid checksums: the check must report it by its code, or
 * the audit if it is in backup roots. Usage: audit-mutate IMAGE...; mutations.h says which images.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/space_cache.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"
#include "audit.h"
#include "mutations.h"
#include "tests/crash/sparse.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void broken(const struct mutation *m, const char *what)
{
	fprintf(stderr, "%s: cannot be put in: %s\n", m->name, what);
	exit(1);
}

static struct btrkit_fs *open_image(struct sparse *image, struct btrkit_error *err)
{
	const struct btrkit_open_options opts = { .flags = BTRKIT_OPEN_PARTIAL };
	struct btrkit_io *io = sparse_io(image);
	struct btrkit_fs *fs = NULL;

	return btrkit_fs_open(&io, 1, &opts, &fs, err) ? NULL : fs;
}

/* Adds to a field of 1, 4 or 8 bytes. */
static void add(uint8_t *at, unsigned size, int64_t n)
{
	le64 value = { { 0 } };

	memcpy(value.b, at, size);
	value = le64_put(le64_get(value) + (uint64_t)n);
	memcpy(at, value.b, size);
}

/* The offset of the first inline reference of a type in its item; 0 if there is none. */
static unsigned inline_ref(const struct item_ctx *ctx, const struct item *item, uint8_t type)
{
	struct extent_item ei;
	struct extent_ref ref;
	const uint8_t *at;

	if ((item->key.type != KEY_EXTENT_ITEM && item->key.type != KEY_METADATA_ITEM) ||
	    extent_item_decode(ctx, item, &ei, NULL))
		return 0;
	for (at = ei.pos; !extent_item_next_ref(&ei, &ref, NULL); at = ei.pos)
		if (ref.type == type)
			return (unsigned)(at - item->data);
	return 0;
}

/* Whether the mutation applies to this item. */
static bool wanted(const struct mutation *m, const struct item_ctx *ctx, const struct item *item)
{
	const size_t flags = item->key.type == KEY_BLOCK_GROUP_ITEM ? offsetof(struct disk_block_group, flags) :
								      offsetof(struct disk_extent_item, flags);

	if (item->key.type != m->type)
		return false;
	if (m->type == KEY_EXTENT_DATA && item->data[offsetof(struct disk_file_extent, type)] == FILE_EXTENT_INLINE)
		return false;
	if (m->flags && (le64_get(*(const le64 *)(item->data + flags)) & m->flags) != m->flags)
		return false;
	return !m->ref || inline_ref(ctx, item, m->ref);
}

static void seek(struct cursor *c, struct btrkit_fs *fs, const struct mutation *m)
{
	struct tree_root root;
	unsigned nth = m->nth;
	int ret = 0;

	if (fs_find_tree(fs, m->tree, &root, NULL, NULL))
		broken(m, "no such tree");
	cursor_init(c, fs, &root);
	for (ret = cursor_seek(c, &KEY(0, 0, 0), NULL); !ret; ret = cursor_next(c, NULL))
		if (wanted(m, &fs->items, &c->item) && !nth--)
			return;
	broken(m, "no such item");
}

/* Removes the item in @slot from a leaf, or make room for one of @size there. */
static void move_items(uint8_t *leaf, uint32_t nodesize, uint32_t slot, bool in, uint32_t size)
{
	struct disk_header *h = (struct disk_header *)leaf;
	struct disk_item *items = (struct disk_item *)(h + 1);
	uint8_t *data = leaf + sizeof(*h);
	uint32_t n = le32_get(h->nritems), room = nodesize - (uint32_t)sizeof(*h);
	const uint32_t low = n ? le32_get(items[n - 1].offset) : room;
	const uint32_t end = slot ? le32_get(items[slot - 1].offset) : room;
	const uint32_t from = in ? end : le32_get(items[slot].offset);
	const int32_t shift = in ? -(int32_t)size : (int32_t)le32_get(items[slot].size);

	memmove(data + low + shift, data + low, from - low);
	for (uint32_t i = in ? slot : slot + 1; i < n; i++)
		items[i].offset = le32_put((uint32_t)((int32_t)le32_get(items[i].offset) + shift));
	memmove(&items[in ? slot + 1 : slot], &items[in ? slot : slot + 1], (n - slot - !in) * sizeof(*items));
	if (in)
		items[slot] = (struct disk_item){ .offset = le32_put(end - size), .size = le32_put(size) };
	h->nritems = le32_put(in ? n + 1 : n - 1);
}

/*
 * The last item of the leaf is an extent with one inline reference of an inode: add the same reference as a keyed item.
 */
static void tell_twice(struct btrkit_fs *fs, uint8_t *leaf, uint32_t n)
{
	struct disk_item *last = (struct disk_item *)(leaf + sizeof(struct disk_header)) + n - 1;
	uint8_t *extent = leaf + sizeof(struct disk_header) + le32_get(last->offset);
	const struct disk_extent_data_ref ref =
		*(struct disk_extent_data_ref *)(extent + sizeof(struct disk_extent_item) + 1);
	const uint64_t hash = extent_data_ref_hash(le64_get(ref.root), le64_get(ref.objectid), le64_get(ref.offset));

	add(extent, 8, 1);
	move_items(leaf, fs->geometry.nodesize, n, true, sizeof(ref));
	last[1].key = key_put(&KEY(le64_get(last->key.objectid), KEY_EXTENT_DATA_REF, hash));
	memcpy(extent - sizeof(ref), &ref, sizeof(ref));
}

static void change_leaf(const struct mutation *m, struct btrkit_fs *fs, const struct cursor *c, uint8_t *leaf)
{
	struct disk_item *head = (struct disk_item *)(leaf + sizeof(struct disk_header)) + c->slots[0];
	uint8_t *data = leaf + sizeof(struct disk_header) + le32_get(head->offset);
	const uint32_t n = c->nodes[0]->nritems;

	switch (m->what) {
	case ADD:
		add(data + m->at, m->size, m->add);
		break;
	case REF_ADD:
		add(data + inline_ref(&fs->items, &c->item, m->ref) + m->at, m->size, m->add);
		break;
	case KEY_ADD:
		add(head->key.offset.b, 8, m->add);
		break;
	case LAST_KEY_ADD:
		add((head - c->slots[0] + n - 1)->key.objectid.b, 8, m->add);
		break;
	case DROP:
		move_items(leaf, fs->geometry.nodesize, c->slots[0], false, 0);
		break;
	case INSERT:
		move_items(leaf, fs->geometry.nodesize, n, true, m->size);
		memcpy(leaf + sizeof(struct disk_header) + le32_get(head[n - c->slots[0]].offset), c->item.data,
		       m->size);
		head[n - c->slots[0]].key = key_put(&KEY(1ull << 40, m->add, 65536));
		break;
	case TWICE:
		tell_twice(fs, leaf, n);
		break;
	case HEADER_ADD:
		add(leaf + m->at, m->size, m->add);
		break;
	default:
		broken(m, "not in a leaf");
	}
}

static void put_in_tree(const struct mutation *m, struct btrkit_fs *fs)
{
	const uint32_t size = fs->geometry.nodesize;
	uint8_t *leaf = malloc(size);
	struct cursor c;
	struct copy copy;

	seek(&c, fs, m);
	memcpy(leaf, c.nodes[0]->data, size);
	change_leaf(m, fs, &c, leaf);
	fs->geometry.csum->compute(leaf + 32, size - 32, leaf);
	for (unsigned mirror = 0; !volume_map(fs->volume, c.nodes[0]->bytenr, size, mirror, &copy, NULL); mirror++)
		if (btrkit_io_write(copy.io, copy.physical, leaf, size, NULL))
			broken(m, "cannot write");
	cursor_release(&c);
	free(leaf);
}

/* Shortens the first entry of a v1 cache. */
static void put_in_cache(const struct mutation *m, struct btrkit_fs *fs)
{
	struct space_cache header;
	struct file_extent fe;
	struct cursor c;
	struct copy copy;
	uint8_t page[4096];
	uint32_t sums;
	le32 sum;

	cursor_init(&c, fs, &fs->root_tree);
	if (cursor_seek(&c, &KEY(OID_FREE_SPACE, 0, 0), NULL) || space_cache_decode(&c.item, &header, NULL) ||
	    cursor_seek(&c, &KEY(header.location.objectid, KEY_EXTENT_DATA, 0), NULL) ||
	    file_extent_decode(&fs->items, &c.item, &fe, NULL) ||
	    volume_map(fs->volume, fe.disk_bytenr, sizeof(page), 0, &copy, NULL) ||
	    btrkit_io_read(copy.io, copy.physical, page, sizeof(page), NULL))
		broken(m, "no cache");
	sums = (uint32_t)(fe.num_bytes / sizeof(page) * sizeof(le32));
	add(page + sums + sizeof(le64) + sizeof(le64), 8, m->add);
	sum = le32_put(~crc32c(~0u, page + sums, sizeof(page) - sums));
	memcpy(page, sum.b, sizeof(sum));
	if (btrkit_io_write(copy.io, copy.physical, page, sizeof(page), NULL))
		broken(m, "cannot write");
	cursor_release(&c);
}

static void put_in_super(const struct mutation *m, struct btrkit_fs *fs, struct sparse *image)
{
	struct disk_super super = fs->super.disk;
	unsigned at = m->at;

	for (unsigned i = 0; m->what == BACKUP_ADD && i < SUPER_BACKUPS; i++)
		if (le64_get(super.backups[i].tree_root_gen) == fs->super.generation)
			at = (unsigned)(offsetof(struct disk_super, backups) + i * sizeof(super.backups[0])) + m->at;
	add((uint8_t *)&super + at, m->size, m->add);
	fs->geometry.csum->compute(super.fsid, SUPER_SIZE - sizeof(super.csum), super.csum);
	sparse_write(image, super_offset(0), &super, sizeof(super));
}

/* Findings: whether one has the code, and all codes. */
struct told {
	const char *code;
	bool seen;
	char codes[512];
};

static int take(void *ctx, const struct btrkit_finding *f)
{
	struct told *t = ctx;
	const size_t n = strlen(t->codes);

	t->seen |= !strcmp(f->code->name, t->code);
	snprintf(t->codes + n, sizeof(t->codes) - n, " %s", f->code->name);
	return 0;
}

static bool has_code(struct btrkit_fs *fs, const struct mutation *m)
{
	struct btrkit_check_options opts = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct told told = { .code = m->expect };

	opts.threads = opts.repeats = 1;
	opts.finding = take;
	opts.ctx = &told;
	if (btrkit_check(fs, &opts, NULL, &err))
		broken(m, err.message);
	if (!told.seen)
		printf("%s: %s: not %s but%s\n", m->image, m->name, m->expect, told.codes[0] ? told.codes : " nothing");
	return told.seen;
}

/* A contradiction in the current backup roots is reported by the audit, and by nothing else: Linux ignores it. */
static bool has_backups(struct btrkit_fs *fs, const struct mutation *m)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	char line[512];
	const int ret = audit_backups(fs, &err);
	const bool alone = !audit(fs, AUDIT_LEFTOVERS | AUDIT_SUPERS, NULL, NULL);

	btrkit_error_format(&err, line, sizeof(line));
	if (ret == -EUCLEAN && alone && strstr(line, m->expect))
		return true;
	printf("%s: %s: not '%s' %s but %s\n", m->image, m->name, m->expect, alone ? "alone" : "and more",
	       ret ? line : "nothing");
	return false;
}

static bool try_one(const struct mutation *m, struct sparse *good)
{
	struct sparse *image = sparse_create(sparse_io(good)->size, good);
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct btrkit_fs *fs = open_image(image, &err);
	bool seen;

	if (!fs)
		broken(m, err.message);
	if (m->what == SUPER_ADD || m->what == BACKUP_ADD)
		put_in_super(m, fs, image);
	else if (m->what == CACHE_ADD)
		put_in_cache(m, fs);
	else
		put_in_tree(m, fs);
	btrkit_fs_close(fs);
	fs = open_image(image, &err);
	if (!fs)
		broken(m, err.message);
	seen = m->what == BACKUP_ADD ? has_backups(fs, m) : has_code(fs, m);
	btrkit_fs_close(fs);
	sparse_free(image);
	return seen;
}

/* Without the mutation, the image must have no findings. */
static bool is_good(struct sparse *image, struct btrkit_error *err)
{
	struct btrkit_fs *fs = open_image(image, err);
	bool good = fs && !audit(fs, AUDIT_LEFTOVERS, NULL, err) && !audit_backups(fs, err);

	btrkit_fs_close(fs);
	return good;
}

static bool is_image(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, name, strlen(name)) && !strcmp(base + strlen(name), ".img");
}

int main(int argc, char **argv)
{
	size_t tried = 0, missed = 0;

	for (int i = 1; i < argc; i++) {
		struct sparse *good = sparse_import(argv[i]);
		struct btrkit_error err = BTRKIT_ERROR_INIT;
		char line[512];

		if (!is_good(good, &err)) {
			printf("%s: %s\n", argv[i], btrkit_error_format(&err, line, sizeof(line)));
			return 1;
		}
		for (size_t j = 0; j < COUNT(mutations); j++) {
			if (!is_image(argv[i], mutations[j].image))
				continue;
			tried++;
			missed += !try_one(&mutations[j], good);
		}
		sparse_free(good);
	}
	printf("compared %zu contradictions with the findings: %zu missed\n", tried, missed);
	return missed || tried != COUNT(mutations);
}
