// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/space/space_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/files/inode.h"
#include "lib/tree/cursor.h"
#include "lib/volume/volume.h"

#define ENTRY_EXTENT 1
#define ENTRY_BITMAP 2

struct disk_space_cache_entry {
	le64 offset;
	le64 bytes;
	uint8_t type;
};
DISK_ASSERT_SIZE(disk_space_cache_entry, 17);

/* Reads the pages of the file, one after another. */
struct reader_v1 {
	struct space_cache_group *cache;
	struct cursor c; /* in the root tree, on the current file extent */
	struct file_extent extent;
	uint64_t extent_start;
	uint64_t pages; /* next page to read */
	uint64_t next;	/* page to come */
	le32 *sums;	/* checksum of each page; these are at the start of the first page */
	uint8_t *page;	/* the page read last */
};

BTRKIT_PRINTF(2, 3)
static int ignore(struct space_cache_group *cache, const char *fmt, ...)
{
	va_list args;

	cache->state = SPACE_CACHE_IGNORED;
	va_start(args, fmt);
	vsnprintf(cache->why, sizeof(cache->why), fmt, args);
	va_end(args);
	return 1;
}

/* Errors about the contents of a cache are reasons to ignore it. Others are returned. */
static int ignore_corrupt(struct space_cache_group *cache, int ret, const struct btrkit_error *e,
			  struct btrkit_error *err)
{
	if (ret == -EUCLEAN || ret == -ENXIO)
		return ignore(cache, "%s", e->message);
	if (err)
		*err = *e;
	return ret;
}

/* Finds the header. @return 0; 1: there is none, or the cache is to be ignored; <0 */
static int find_header(struct cursor *c, uint64_t start, struct space_cache_group *cache, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	int ret = cursor_find(c, &KEY(OID_FREE_SPACE, 0, start), err);

	if (ret)
		return ret;
	ret = space_cache_decode(&c->item, &cache->header, &e);
	return ret ? ignore_corrupt(cache, ret, &e, err) : 0;
}

/* This is how Linux leaves a cache that it could not write. */
static int unfinished(struct space_cache_group *cache, const char *why)
{
	cache->unfinished = true;
	return ignore(cache, "%s", why);
}

static int find_inode(struct cursor *c, struct space_cache_group *cache, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	struct inode_item inode;
	int ret = cursor_find(c, &cache->header.location, err);

	if (ret == 1)
		return ignore(cache, "its inode %" PRIu64 " is missing", cache->header.location.objectid);
	if (!ret) {
		ret = inode_item_decode(&c->fs->items, &c->item, &inode, &e);
		if (ret)
			return ignore_corrupt(cache, ret, &e, err);
	}
	if (ret)
		return ret;
	cache->size = inode.size;
	if (!inode.generation)
		return unfinished(cache, "it was being written: its inode has generation 0");
	if (inode.generation != cache->header.generation)
		return ignore(cache, "its inode has generation %" PRIu64 ", its header %" PRIu64, inode.generation,
			      cache->header.generation);
	if (!inode.size)
		return unfinished(cache, "it is empty");
	if (cache->header.num_entries)
		return 0;
	cache->state = SPACE_CACHE_EMPTY;
	return 1;
}

/* Finds the file extent of the next page. @return 0; 1: ignored; <0 */
static int find_extent(struct reader_v1 *r, struct btrkit_error *err)
{
	const uint64_t at = r->next * r->cache->page_size;
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	struct cursor *c = &r->c;
	int ret;

	if (r->extent.num_bytes && at - r->extent_start < r->extent.num_bytes)
		return 0;
	ret = cursor_find(c, &KEY(r->cache->header.location.objectid, KEY_EXTENT_DATA, at), err);
	if (ret < 0)
		return ret;
	if (ret)
		return ignore(r->cache, "its file has no data at %" PRIu64, at);
	ret = file_extent_decode(&c->fs->items, &c->item, &r->extent, &e);
	if (ret)
		return ignore_corrupt(r->cache, ret, &e, err);
	r->extent_start = at;
	if (r->extent.type != FILE_EXTENT_REG || r->extent.compression || !r->extent.disk_bytenr ||
	    !r->extent.num_bytes)
		return ignore(r->cache, "its file has no regular, uncompressed data at %" PRIu64, at);
	return 0;
}

/* The checksum of the first page excludes the checksums in it. */
static int verify_page(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct reader_v1 *r = ctx;
	const size_t skip = r->next ? 0 : r->pages * sizeof(le32);
	const le32 *sums = r->next ? r->sums : buf;

	if (le32_get(sums[r->next]) == ~crc32c(~0u, (const uint8_t *)buf + skip, r->cache->page_size - skip))
		return 0;
	return err_corrupt(err, "csum", "checksum mismatch of page %" PRIu64, r->next);
}

/* Reads the next page. @return 0; 1: ignored; <0 */
static int next_page(struct reader_v1 *r, struct btrkit_error *err)
{
	struct btrkit_error e = BTRKIT_ERROR_INIT;
	int ret;

	if (r->c.fs->items.incompat & INCOMPAT_RAID_STRIPE_TREE)
		return unfinished(r->cache, "its file is located by the raid-stripe-tree, which is not supported");
	if (r->next == r->pages)
		return ignore(r->cache, "its file of %" PRIu64 " pages is too short", r->pages);
	ret = find_extent(r, err);
	if (ret)
		return ret;
	ret = volume_read(r->c.fs->volume,
			  r->extent.disk_bytenr + r->extent.offset + r->next * r->cache->page_size - r->extent_start,
			  r->page, r->cache->page_size, verify_page, r, &e);
	if (ret)
		return ignore_corrupt(r->cache, ret, &e, err);
	if (!r->next)
		memcpy(r->sums, r->page, r->pages * sizeof(le32));
	r->next++;
	return 0;
}

/* Allocates memory for what the header says, after checking that this fits into the file and the group. */
static int make_room(struct reader_v1 *r, const struct block_group *g, struct btrkit_error *err)
{
	struct space_cache_group *cache = r->cache;
	const uint64_t span = 8ull * cache->page_size * r->c.fs->geometry.sectorsize;
	const struct space_cache *h = &cache->header;

	if (h->num_bitmaps > h->num_entries || h->num_bitmaps > g->length / span + 1 || h->num_bitmaps > r->pages ||
	    h->num_entries > g->length / r->c.fs->geometry.sectorsize + h->num_bitmaps ||
	    h->num_entries > r->pages * (cache->page_size / sizeof(struct disk_space_cache_entry)))
		return ignore(cache, "it cannot have %" PRIu64 " entries and %" PRIu64 " bitmaps", h->num_entries,
			      h->num_bitmaps);
	cache->extents = calloc(h->num_entries - h->num_bitmaps + 1, sizeof(*cache->extents));
	cache->bitmaps = calloc(h->num_bitmaps + 1, sizeof(*cache->bitmaps));
	cache->bits = calloc(h->num_bitmaps + 1, cache->page_size);
	return cache->extents && cache->bitmaps && cache->bits ? 0 : err_nomem(err);
}

static int add_entry(struct reader_v1 *r, const struct disk_space_cache_entry *d, const struct block_group *g)
{
	const uint64_t sector = r->c.fs->geometry.sectorsize, span = 8 * sector * r->cache->page_size;
	const uint64_t at = le64_get(d->offset), bytes = le64_get(d->bytes);
	struct space_cache_group *cache = r->cache;

	if (at - g->start >= g->length || !bytes || (at | bytes) % sector || bytes > g->start + g->length - at)
		return ignore(cache, "invalid entry of %" PRIu64 " bytes at %" PRIu64, bytes, at);
	if (d->type == ENTRY_EXTENT && cache->num_extents < cache->header.num_entries - cache->header.num_bitmaps) {
		cache->extents[cache->num_extents++] = (struct range){ at, bytes };
		return 0;
	}
	if (d->type == ENTRY_BITMAP && cache->num_bitmaps < cache->header.num_bitmaps && !((at - g->start) % span)) {
		cache->bitmaps[cache->num_bitmaps] = (struct space_cache_bitmap){ at, bytes, cache->num_bitmaps };
		cache->num_bitmaps++;
		return 0;
	}
	return ignore(cache, "entry of type %u at %" PRIu64 " is unexpected", d->type, at);
}

static int read_entries(struct reader_v1 *r, const struct block_group *g, struct btrkit_error *err)
{
	/* In the first page, the generation follows the checksums. */
	size_t at = r->pages * sizeof(le32) + sizeof(le64);

	for (uint64_t i = 0; i < r->cache->header.num_entries; i++) {
		int ret = 0;

		if (r->cache->page_size - at < sizeof(struct disk_space_cache_entry)) {
			ret = next_page(r, err);
			at = 0;
		}
		if (!ret)
			ret = add_entry(r, (const struct disk_space_cache_entry *)(r->page + at), g);
		if (ret)
			return ret;
		at += sizeof(struct disk_space_cache_entry);
	}
	return 0;
}

static int read_bitmaps(struct reader_v1 *r, struct btrkit_error *err)
{
	struct space_cache_group *cache = r->cache;

	for (size_t i = 0; i < cache->num_bitmaps; i++) {
		int ret = next_page(r, err);

		if (ret)
			return ret;
		memcpy(cache->bits + i * cache->page_size, r->page, cache->page_size);
	}
	return 0;
}

static int cmp_extents(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int cmp_bitmaps(const void *a, const void *b)
{
	const struct space_cache_bitmap *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void rewind_cache(struct space_cache_group *cache)
{
	cache->extent = cache->bitmap = 0;
	cache->bit = 0;
	memset(cache->ahead, 0, sizeof(cache->ahead));
	cache->joined = (struct range){ 0 };
}

/* Number of bits of a bitmap that are within the group. */
static uint64_t bitmap_bits(const struct space_cache_group *cache, const struct space_cache_bitmap *b)
{
	const uint64_t bits = 8ull * cache->page_size, in_group = (cache->end - b->start) / cache->page_size;

	return bits < in_group ? bits : in_group;
}

static bool next_of_bitmaps(struct space_cache_group *cache, struct range *ret)
{
	for (; cache->bitmap < cache->num_bitmaps; cache->bitmap++, cache->bit = 0) {
		const struct space_cache_bitmap *b = &cache->bitmaps[cache->bitmap];
		const uint8_t *bits = cache->bits + b->page * cache->page_size;
		const uint64_t n = bitmap_bits(cache, b), first = bits_find(bits, n, cache->bit, true);

		if (first == n)
			continue;
		cache->bit = bits_find(bits, n, first, false);
		*ret = (struct range){ b->start + first * cache->page_size, (cache->bit - first) * cache->page_size };
		return true;
	}
	return false;
}

/* The next extent or run of bits, in address order. */
static bool next_unjoined(struct space_cache_group *cache, struct range *ret)
{
	struct range *extent = &cache->ahead[0], *run = &cache->ahead[1];
	struct range *first;

	if (!extent->length && cache->extent < cache->num_extents)
		*extent = cache->extents[cache->extent++];
	if (!run->length && !next_of_bitmaps(cache, run))
		run->length = 0;
	if (!extent->length && !run->length)
		return false;
	first = !run->length || (extent->length && extent->start < run->start) ? extent : run;
	*ret = *first;
	first->length = 0;
	return true;
}

int space_cache_next(struct space_cache_group *cache, struct range *free)
{
	struct range next;

	while (next_unjoined(cache, &next)) {
		struct range done = cache->joined;

		if (done.length && range_end(&done) == next.start) {
			cache->joined.length += next.length;
			continue;
		}
		cache->joined = next;
		if (done.length) {
			*free = done;
			return 0;
		}
	}
	*free = cache->joined;
	cache->joined.length = 0;
	return free->length ? 0 : 1;
}

/* Check that no ranges overlap, and that each bitmap has as many bits as its entry says. */
static int check_contents(struct space_cache_group *cache)
{
	const uint64_t whole = 8ull * cache->page_size;
	uint64_t pos = 0;
	struct range r;

	for (size_t i = 0; i < cache->num_bitmaps; i++) {
		const struct space_cache_bitmap *b = &cache->bitmaps[i];
		const uint8_t *bits = cache->bits + b->page * cache->page_size;
		uint64_t set = 0;

		for (uint32_t byte = 0; byte < cache->page_size; byte++)
			set += (unsigned)__builtin_popcount(bits[byte]);
		if (set * cache->page_size != b->bytes ||
		    bits_find(bits, whole, bitmap_bits(cache, b), true) != whole)
			return ignore(cache, "bitmap at %" PRIu64 " has %" PRIu64 " bits for %" PRIu64 " bytes",
				      b->start, set, b->bytes);
		if (i && b->start == cache->bitmaps[i - 1].start)
			return ignore(cache, "two bitmaps at %" PRIu64, b->start);
	}
	while (next_unjoined(cache, &r)) {
		if (r.start < pos)
			return ignore(cache, "free ranges overlap at %" PRIu64, r.start);
		pos = range_end(&r);
	}
	rewind_cache(cache);
	return 0;
}

static int read_contents(struct reader_v1 *r, const struct block_group *g, struct btrkit_error *err)
{
	struct space_cache_group *cache = r->cache;
	const size_t head = r->pages * sizeof(le32);
	uint64_t generation;
	le64 stored;
	int ret;

	ret = make_room(r, g, err);
	if (!ret)
		ret = next_page(r, err);
	if (ret)
		return ret;
	memcpy(&stored, r->page + head, sizeof(stored));
	generation = le64_get(stored);
	if (generation != cache->header.generation)
		return ignore(cache, "its first page has generation %" PRIu64 ", its header %" PRIu64, generation,
			      cache->header.generation);
	ret = read_entries(r, g, err);
	if (!ret && cache->num_bitmaps != cache->header.num_bitmaps)
		ret = ignore(cache, "it has %zu bitmaps, its header says %" PRIu64, cache->num_bitmaps,
			     cache->header.num_bitmaps);
	if (!ret)
		ret = read_bitmaps(r, err);
	if (ret)
		return ret;
	qsort(cache->extents, cache->num_extents, sizeof(*cache->extents), cmp_extents);
	qsort(cache->bitmaps, cache->num_bitmaps, sizeof(*cache->bitmaps), cmp_bitmaps);
	return check_contents(cache);
}

/* Adds up the bytes allocated for the file. Invalid items do not count. */
static int sum_extents(struct cursor *c, struct space_cache_group *cache, struct btrkit_error *err)
{
	const uint64_t ino = cache->header.location.objectid;
	struct file_extent fe;
	int ret;

	for (ret = cursor_seek(c, &KEY(ino, KEY_EXTENT_DATA, 0), err);
	     !ret && c->item.key.objectid == ino && c->item.key.type == KEY_EXTENT_DATA; ret = cursor_next(c, err))
		if (!file_extent_decode(&c->fs->items, &c->item, &fe, NULL) && fe.disk_bytenr)
			cache->bytes += fe.disk_num_bytes;
	return ret < 0 ? ret : 0;
}

static int load(struct reader_v1 *r, const struct block_group *g, struct btrkit_error *err)
{
	struct space_cache_group *cache = r->cache;
	const uint32_t page = cache->page_size;
	int found, ret;

	ret = find_header(&r->c, g->start, cache, err);
	if (ret)
		return ret;
	cache->state = SPACE_CACHE_USABLE;
	found = find_inode(&r->c, cache, err);
	ret = found < 0 ? found : sum_extents(&r->c, cache, err);
	if (ret || found)
		return ret ? ret : found;
	r->pages = cache->size / page + !!(cache->size % page);
	if (r->pages > (page - sizeof(le64)) / sizeof(le32))
		return ignore(cache, "its file of %" PRIu64 " bytes is too large", cache->size);
	r->sums = calloc(r->pages, sizeof(*r->sums));
	r->page = malloc(page);
	return r->sums && r->page ? read_contents(r, g, err) : err_nomem(err);
}

int space_cache_load_at(struct btrkit_fs *fs, const struct tree_root *root_tree, const struct block_group *group,
			struct space_cache_group *ret, struct btrkit_error *err)
{
	/* The page size is that of Linux, which writes this cache only if it equals the sector size. */
	struct space_cache_group cache = { .page_size = fs->geometry.sectorsize, .end = group->start + group->length };
	struct reader_v1 r = { .cache = &cache };
	int result;

	cursor_init(&r.c, fs, root_tree);
	result = load(&r, group, err);
	cursor_release(&r.c);
	free(r.sums);
	free(r.page);
	if (result < 0) {
		space_cache_group_release(&cache);
		return result;
	}
	*ret = cache;
	return 0;
}

int space_cache_load(struct btrkit_fs *fs, const struct block_group *group, struct space_cache_group *ret,
		     struct btrkit_error *err)
{
	return space_cache_load_at(fs, &fs->root_tree, group, ret, err);
}

void space_cache_group_release(struct space_cache_group *cache)
{
	free(cache->extents);
	free(cache->bitmaps);
	free(cache->bits);
	cache->extents = NULL;
	cache->bitmaps = NULL;
	cache->bits = NULL;
}

int space_cache_headers(struct btrkit_fs *fs, const struct block_groups *groups,
			int (*found)(void *ctx, const struct space_cache *header), void *ctx, uint64_t *count,
			struct btrkit_error *err)
{
	struct space_cache header;
	struct cursor c;
	int ret;

	*count = 0;
	cursor_init(&c, fs, &fs->root_tree);
	for (ret = cursor_seek(&c, &KEY(OID_FREE_SPACE, 0, 0), err);
	     !ret && c.item.key.objectid == OID_FREE_SPACE && !c.item.key.type; ret = cursor_next(&c, err)) {
		++*count;
		if (block_groups_find(groups, c.item.key.offset))
			continue;
		if (space_cache_decode(&c.item, &header, NULL))
			header = (struct space_cache){ .start = c.item.key.offset };
		ret = found(ctx, &header);
		if (ret)
			break;
	}
	cursor_release(&c);
	return ret == 1 ? 0 : ret;
}
