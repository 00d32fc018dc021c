// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compares free space trees, for free-space-kernel.py. Prints counts of what was compared, one per line; exits with
 * status 1 at the first difference.
 *
 *   free-space build IMAGE     the tree of an image with one built from its extent tree: all ranges must be equal,
 *                              and the forms too unless they depend on history
 *   free-space inverse IMAGE   its ranges with the gaps between extents, without any code of lib/space
 *   free-space same A B        the data block groups of two images
 */
#include <btrkit/filesystem.h>
#include <btrkit/io.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/format/items/free_space.h"
#include "lib/space/free_space_edit.h"
#include "lib/space/free_space_form.h"

static _Noreturn void die(const char *fmt, ...) BTRKIT_PRINTF(1, 2);

static _Noreturn void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void must(int ret, const char *what, const struct btrkit_error *err)
{
	char line[512];

	if (ret < 0)
		die("%s: %s", what, btrkit_error_format(err, line, sizeof(line)));
}

static void *more(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n, size);
	if (!p)
		die("no memory");
	return p;
}

/* Items with their bytes, in tree order. */
struct items {
	struct copy {
		struct btrkit_key key;
		uint32_t size;
		uint8_t *data;
	} * at;
	size_t n, room;
};

static void items_add(struct items *items, const struct item *item)
{
	struct copy *c;

	if (items->n == items->room) {
		items->room = 2 * items->room + 1024;
		items->at = more(items->at, items->room, sizeof(*items->at));
	}
	c = &items->at[items->n++];
	*c = (struct copy){ item->key, item->size, more(NULL, item->size + 1, 1) };
	if (item->size)
		memcpy(c->data, item->data, item->size);
}

static void items_release(struct items *items)
{
	for (size_t i = 0; i < items->n; i++)
		free(items->at[i].data);
	free(items->at);
	*items = (struct items){ 0 };
}

/* Index of the first item at or after @start. */
static size_t items_from(const struct items *items, uint64_t start)
{
	size_t low = 0, high = items->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (items->at[mid].key.objectid < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* An image with the items of its free space tree. */
struct image {
	const char *path;
	struct btrkit_fs *fs;
	struct block_groups groups;
	struct items tree;
};

static void read_tree(struct image *image, uint64_t id, struct items *items)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct tree_root root;
	struct cursor c;
	int ret;

	must(fs_find_root(image->fs, id, &root, NULL, &err), image->path, &err);
	cursor_init(&c, image->fs, &root);
	for (ret = cursor_seek(&c, &KEY(0, 0, 0), &err); !ret; ret = cursor_next(&c, &err)) {
		must(item_validate(&image->fs->items, &c.item, &err), image->path, &err);
		items_add(items, &c.item);
	}
	must(ret, image->path, &err);
	cursor_release(&c);
}

static struct image image_open(const char *path)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct image image = { .path = path };
	struct btrkit_io *io;

	must(btrkit_io_open(path, 0, &io, &err), path, &err);
	must(btrkit_fs_open(&io, 1, NULL, &image.fs, &err), path, &err);
	must(block_groups_load(image.fs, &image.groups, &err), path, &err);
	read_tree(&image, OID_FREE_SPACE_TREE, &image.tree);
	return image;
}

static void image_close(struct image *image)
{
	items_release(&image->tree);
	block_groups_release(&image->groups);
	btrkit_fs_close(image->fs);
}

/* A block group as its items describe it, expanded bit by bit. */
struct told {
	uint32_t count; /* extent count in the INFO item */
	bool bitmaps;
	size_t num_bitmaps;
	struct range *ranges;
	size_t n, room;
};

static void told_add(struct told *t, uint64_t start, uint64_t length)
{
	if (t->n && range_end(&t->ranges[t->n - 1]) == start && t->bitmaps) {
		t->ranges[t->n - 1].length += length;
		return;
	}
	if (t->n == t->room) {
		t->room = 2 * t->room + 64;
		t->ranges = more(t->ranges, t->room, sizeof(*t->ranges));
	}
	t->ranges[t->n++] = (struct range){ start, length };
}

static struct told told_of(const struct image *image, const struct items *items, const struct block_group *g)
{
	const uint32_t sector = image->fs->geometry.sectorsize;
	const size_t from = items_from(items, g->start), to = items_from(items, g->start + g->length);
	struct told t = { 0 };

	if (from == to || items->at[from].key.type != KEY_FREE_SPACE_INFO || items->at[from].key.offset != g->length)
		die("%s: group %" PRIu64 " has no FREE_SPACE_INFO", image->path, g->start);
	t.count = le32_get(((const struct disk_free_space_info *)items->at[from].data)->extent_count);
	t.bitmaps = le32_get(((const struct disk_free_space_info *)items->at[from].data)->flags);
	for (size_t i = from + 1; i < to; i++) {
		const struct copy *c = &items->at[i];

		if (c->key.type != (t.bitmaps ? KEY_FREE_SPACE_BITMAP : KEY_FREE_SPACE_EXTENT))
			die("%s: group %" PRIu64 " has both bitmaps and extents", image->path, g->start);
		t.num_bitmaps += t.bitmaps;
		if (!t.bitmaps)
			told_add(&t, c->key.objectid, c->key.offset);
		for (uint64_t bit = 0; t.bitmaps && bit < c->key.offset / sector; bit++)
			if (c->data[bit / 8] >> bit % 8 & 1)
				told_add(&t, c->key.objectid + bit * sector, sector);
	}
	return t;
}

static struct {
	uint64_t groups, ranges, bitmaps, bitmap_groups, extent_groups, empty, full, mixed, metadata, short_bitmaps;
	uint64_t history; /* groups whose form depends on history, and that differ */
	uint64_t between; /* groups whose form depends on history */
	uint64_t items;	  /* compared byte for byte */
	uint64_t leftovers;
} count;

static void count_group(const struct image *image, const struct block_group *g, const struct told *t)
{
	const struct free_space_thresholds limits = free_space_thresholds(g->length, image->fs->geometry.sectorsize);

	count.groups++;
	count.ranges += t->n;
	count.bitmaps += t->num_bitmaps;
	count.bitmap_groups += t->bitmaps;
	count.extent_groups += !t->bitmaps;
	count.empty += !g->used;
	count.full += g->used == g->length;
	count.mixed += (g->flags & (BG_DATA | BG_METADATA)) == (BG_DATA | BG_METADATA);
	count.metadata += !(g->flags & BG_DATA);
	count.between += limits.low && t->count >= limits.low && t->count <= limits.high;
	count.short_bitmaps +=
		t->bitmaps && g->length % (8ull * FREE_SPACE_BITMAP_BYTES * image->fs->geometry.sectorsize);
}

static void compare_ranges(const struct image *image, const struct block_group *g, const struct told *theirs,
			   const struct told *ours)
{
	for (size_t i = 0; i < theirs->n || i < ours->n; i++) {
		const struct range none = { 0 };
		const struct range a = i < theirs->n ? theirs->ranges[i] : none,
				   b = i < ours->n ? ours->ranges[i] : none;

		if (a.start != b.start || a.length != b.length)
			die("%s: group %" PRIu64 " range %zu: the tree has %" PRIu64 "+%" PRIu64 ", not %" PRIu64
			    "+%" PRIu64,
			    image->path, g->start, i, a.start, a.length, b.start, b.length);
	}
	if (theirs->count != theirs->n)
		die("%s: group %" PRIu64 " counts %" PRIu32 " ranges, there are %zu", image->path, g->start,
		    theirs->count, theirs->n);
}

/* Compares all items of a group. */
static void compare_items(const char *what, const struct items *a, const struct items *b, const struct block_group *g)
{
	const size_t i = items_from(a, g->start), n = items_from(a, g->start + g->length) - i;
	const size_t j = items_from(b, g->start), m = items_from(b, g->start + g->length) - j;

	if (n != m)
		die("%s: group %" PRIu64 " has %zu items and %zu", what, g->start, n, m);
	for (size_t k = 0; k < n; k++) {
		const struct copy *x = &a->at[i + k], *y = &b->at[j + k];

		if (key_cmp(&x->key, &y->key) || x->size != y->size || memcmp(x->data, y->data, x->size))
			die("%s: group %" PRIu64 " differs in item %zu, (%" PRIu64 " %u %" PRIu64 ") and (%" PRIu64
			    " %u %" PRIu64 ")",
			    what, g->start, k, x->key.objectid, x->key.type, x->key.offset, y->key.objectid,
			    y->key.type, y->key.offset);
	}
	count.items += n;
}

/* Compares a group of the image with other items for it; the form may differ only if it depends on history. */
static void compare_group(const struct image *image, const struct block_group *g, const struct items *other)
{
	const uint32_t sector = image->fs->geometry.sectorsize;
	const struct free_space_thresholds limits = free_space_thresholds(g->length, sector);
	struct told theirs = told_of(image, &image->tree, g), ours = told_of(image, other, g);

	compare_ranges(image, g, &theirs, &ours);
	if (theirs.bitmaps == ours.bitmaps)
		compare_items(image->path, &image->tree, other, g);
	else if (theirs.count < limits.low || theirs.count > limits.high)
		die("%s: group %" PRIu64 " with %" PRIu32 " ranges uses %s", image->path, g->start, theirs.count,
		    theirs.bitmaps ? "bitmaps" : "extents");
	else
		count.history++;
	count_group(image, g, &theirs);
	free(theirs.ranges);
	free(ours.ranges);
}

/* Counts items of the image's tree that belong to no group. */
static void count_leftovers(const struct image *image)
{
	size_t groups = 0;

	for (size_t i = 0; i < image->groups.n; i++) {
		const struct block_group *g = &image->groups.at[i];

		groups += items_from(&image->tree, g->start + g->length) - items_from(&image->tree, g->start);
	}
	count.leftovers += image->tree.n - groups;
}

static int place(void *ctx, unsigned level, uint64_t index, uint64_t *bytenr, struct btrkit_error *err)
{
	const struct image *image = ctx;

	(void)err;
	*bytenr = (level + 1) * (1ull << 50) + index * image->fs->geometry.nodesize;
	return 0;
}

static struct items built; /* filled by take_block() */

static int take_block(void *ctx, uint64_t bytenr, const void *block, struct btrkit_error *err)
{
	const struct image *image = ctx;
	struct node *n = more(NULL, 1, sizeof(*n) + image->fs->geometry.nodesize);

	(void)bytenr;
	(void)err;
	n->data = (uint8_t *)(n + 1);
	memcpy(n->data, block, image->fs->geometry.nodesize);
	for (uint32_t i = 0; !node_header(n)->level && i < le32_get(node_header(n)->nritems); i++) {
		const struct item item = leaf_item(n, i);

		items_add(&built, &item);
	}
	free(n);
	return 0;
}

static void build(struct image *image)
{
	const struct bulk_config config = { .rules = &image->fs->rules,
					    .items = &image->fs->items,
					    .chunk_tree_uuid = image->fs->super.fsid,
					    .owner = OID_FREE_SPACE_TREE,
					    .generation = image->fs->super.generation,
					    .place = place,
					    .write = take_block,
					    .ctx = image };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct free_space_built told;
	struct extent_ranges ranges;
	struct tree_root root;
	struct bulk *b;

	must(bulk_create(&config, &b, &err), image->path, &err);
	must(extent_ranges_begin(&ranges, image->fs, &image->groups, &err), image->path, &err);
	must(free_space_build(&ranges, image->fs->geometry.sectorsize, b, &told, &err), image->path, &err);
	must(bulk_finish(b, &root, &err), image->path, &err);
	extent_ranges_release(&ranges);
	bulk_destroy(b);
	for (size_t i = 0; i < image->groups.n; i++)
		compare_group(image, &image->groups.at[i], &built);
	count_leftovers(image);
	if (told.groups != count.groups || told.ranges != count.ranges)
		die("%s: %" PRIu64 " groups and %" PRIu64 " ranges reported as built", image->path,
		    told.groups, told.ranges);
	items_release(&built);
}

/* Extents and free ranges must complement each other. */
static void inverse(struct image *image)
{
	struct items extents = { 0 };
	size_t next = 0;

	read_tree(image, OID_EXTENT_TREE, &extents);
	for (size_t i = 0; i < image->groups.n; i++) {
		const struct block_group *g = &image->groups.at[i];
		struct told said = told_of(image, &image->tree, g), left = { 0 };
		uint64_t at = g->start;

		for (; next < extents.n && extents.at[next].key.objectid < g->start + g->length; next++) {
			const struct btrkit_key *key = &extents.at[next].key;
			const bool skinny = key->type == KEY_METADATA_ITEM;

			if (!skinny && key->type != KEY_EXTENT_ITEM)
				continue;
			if (key->objectid > at)
				told_add(&left, at, key->objectid - at);
			at = key->objectid + (skinny ? image->fs->geometry.nodesize : key->offset);
		}
		if (at < g->start + g->length)
			told_add(&left, at, g->start + g->length - at);
		compare_ranges(image, g, &said, &left);
		count_group(image, g, &said);
		free(said.ranges);
		free(left.ranges);
	}
	items_release(&extents);
}

static void same(struct image *a, struct image *b)
{
	size_t compared = 0;

	for (size_t i = 0; i < a->groups.n; i++) {
		const struct block_group *g = &a->groups.at[i];

		if ((g->flags & BG_TYPE_MASK) != BG_DATA)
			continue;
		if (!block_groups_find(&b->groups, g->start))
			die("%s has no group %" PRIu64, b->path, g->start);
		compare_group(a, g, &b->tree);
		compared++;
	}
	for (size_t i = 0; i < b->groups.n; i++)
		compared -= (b->groups.at[i].flags & BG_TYPE_MASK) == BG_DATA;
	if (compared)
		die("%s has data block groups that %s lacks", a->path, b->path);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct image a;

	if (argc != (strcmp(what, "same") ? 3 : 4))
		die("usage: free-space build|inverse IMAGE | same IMAGE IMAGE");
	a = image_open(argv[2]);
	if (!strcmp(what, "build")) {
		build(&a);
	} else if (!strcmp(what, "inverse")) {
		inverse(&a);
	} else {
		struct image b = image_open(argv[3]);

		same(&a, &b);
		image_close(&b);
	}
	image_close(&a);
	printf("groups %" PRIu64 "\nranges %" PRIu64 "\nbitmaps %" PRIu64 "\ngroups of bitmaps %" PRIu64
	       "\ngroups of extents %" PRIu64 "\nempty groups %" PRIu64 "\nfull groups %" PRIu64
	       "\nmixed groups %" PRIu64 "\ngroups of metadata %" PRIu64 "\ngroups of bitmaps with a short one %" PRIu64
	       "\ngroups between the thresholds %" PRIu64 "\ngroups of another form by history %" PRIu64
	       "\nitems %" PRIu64 "\nleftover items %" PRIu64 "\n",
	       count.groups, count.ranges, count.bitmaps, count.bitmap_groups, count.extent_groups, count.empty,
	       count.full, count.mixed, count.metadata, count.short_bitmaps, count.between, count.history, count.items,
	       count.leftovers);
	return 0;
}
