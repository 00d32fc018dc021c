// SPDX-License-Identifier: LGPL-2.1-or-later
/* Blocks waiting to be written, and the blocks saved in the undo file. */
#include "lib/io/undo_pages.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/zero.h"

#define WINDOW_BLOCKS (UNDO_WINDOW / UNDO_BLOCK)

bool undo_pages_create(struct undo_io *u)
{
	u->pool = malloc((size_t)UNDO_PAGES * UNDO_BLOCK);
	u->run = malloc(UNDO_WINDOW);
	return u->pool && u->run;
}

void undo_pages_release(struct undo_io *u)
{
	struct undo_leaf *leaf, *next;

	HASH_ITER(hh, u->saved, leaf, next)
	{
		HASH_DEL(u->saved, leaf);
		free(leaf);
	}
	free(u->pool);
	free(u->run);
}

static size_t block_bytes(const struct undo_io *u, uint64_t number)
{
	uint64_t left = u->io.size - number * UNDO_BLOCK;

	return left < UNDO_BLOCK ? (size_t)left : UNDO_BLOCK;
}

/* The bytes in @n blocks, of which the last may be the incomplete last one of the device. */
static size_t blocks_bytes(const struct undo_io *u, uint64_t first, size_t n)
{
	return (n - 1) * UNDO_BLOCK + block_bytes(u, first + n - 1);
}

static struct undo_leaf *leaf_of(const struct undo_io *u, uint64_t block)
{
	const uint64_t number = block / UNDO_LEAF_BLOCKS;
	struct undo_leaf *leaf;

	HASH_FIND(hh, u->saved, &number, sizeof(number), leaf);
	return leaf;
}

static bool is_saved(const struct undo_io *u, uint64_t block)
{
	const struct undo_leaf *leaf = leaf_of(u, block);

	return leaf && leaf->bits[block % UNDO_LEAF_BLOCKS / 64] >> block % 64 & 1;
}

/* Creates the leaf before saving: if that failed afterwards, the blocks would be saved twice. */
static struct undo_leaf *make_leaf(struct undo_io *u, uint64_t block)
{
	struct undo_leaf *leaf = leaf_of(u, block);

	if (leaf)
		return leaf;
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		return NULL;
	leaf->number = block / UNDO_LEAF_BLOCKS;
	HASH_ADD(hh, u->saved, number, sizeof(leaf->number), leaf);
	if (leaf->hh.tbl)
		return leaf;
	free(leaf);
	return NULL;
}

struct disk_undo_record undo_record_of(const struct undo_io *u, enum undo_type type, uint64_t offset, uint64_t len,
					 size_t payload)
{
	return (struct disk_undo_record){
		.payload = le32_put((uint32_t)payload),
		.offset = le64_put(offset),
		.len = le64_put(len),
		.device = le16_put((uint16_t)u->device),
		.type = (uint8_t)type,
	};
}

/* Saves @n blocks of one window, none of which has been saved yet. */
static int save_run(struct undo_io *u, uint64_t first, size_t n)
{
	size_t len = blocks_bytes(u, first, n), payload = len;
	struct undo_leaf *leaf = make_leaf(u, first);	/* a window lies in one leaf */
	struct disk_undo_record head;
	int ret;

	if (!leaf)
		return err_nomem(&u->failure);
	ret = btrkit_io_read(u->below, first * UNDO_BLOCK, u->run, len, &u->failure);
	if (ret)
		return ret;
	if (is_all_zeros(u->run, len))
		payload = 0;
	head = undo_record_of(u, UNDO_OLD, first * UNDO_BLOCK, len, payload);
	head.flags = payload ? 0 : UNDO_ZEROS;
	ret = undo_log_append(u->log, &head, u->run, &u->failure);
	for (size_t i = 0; !ret && i < n; i++)
		leaf->bits[(first + i) % UNDO_LEAF_BLOCKS / 64] |= 1ull << (first + i) % 64;
	return ret;
}

int undo_save(struct undo_io *u, uint64_t first, uint64_t end)
{
	int ret = 0;

	while (!ret && first < end) {
		uint64_t window = (first / WINDOW_BLOCKS + 1) * WINDOW_BLOCKS, stop = window < end ? window : end;
		size_t n = 0;

		while (first + n < stop && !is_saved(u, first + n))
			n++;
		if (n)
			ret = save_run(u, first, n);
		first += n ? n : 1;
	}
	return ret;
}

/* The number of pages, starting with number @i, that are adjacent and in the same window. */
static size_t run_of_pages(const struct undo_io *u, size_t i)
{
	uint64_t first = u->pages[i].number, end = (first / WINDOW_BLOCKS + 1) * WINDOW_BLOCKS;
	size_t n = 1;

	while (i + n < u->num_pages && first + n < end && u->pages[i + n].number == first + n)
		n++;
	return n;
}

static size_t gather(struct undo_io *u, size_t i, size_t n)
{
	for (size_t j = 0; j < n; j++)
		memcpy(u->run + j * UNDO_BLOCK, u->pool + (size_t)u->pages[i + j].slot * UNDO_BLOCK, UNDO_BLOCK);
	return blocks_bytes(u, u->pages[i].number, n);
}

/* Adds to the file the old contents of the blocks, and the checksums of the new ones. */
static int announce_run(struct undo_io *u, size_t i, size_t n)
{
	uint64_t first = u->pages[i].number;
	le32 sums[UNDO_WINDOW / UNDO_SECTOR];
	struct disk_undo_record head;
	uint32_t sectors;
	size_t len;
	int ret;

	ret = undo_save(u, first, first + n);
	if (ret)
		return ret;
	len = gather(u, i, n);
	sectors = undo_sectors(len);
	for (uint32_t s = 0; s < sectors; s++) {
		size_t at = (size_t)s * UNDO_SECTOR, left = len - at;

		sums[s] = le32_put(crc32c(~0u, u->run + at, left < UNDO_SECTOR ? left : UNDO_SECTOR));
	}
	head = undo_record_of(u, UNDO_NEW, first * UNDO_BLOCK, len, sectors * sizeof(sums[0]));
	return undo_log_append(u->log, &head, sums, &u->failure);
}

static int write_pages(struct undo_io *u)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < u->num_pages;) {
		size_t n = run_of_pages(u, i), len = gather(u, i, n);

		u->log->touched = true;
		ret = btrkit_io_write(u->below, u->pages[i].number * UNDO_BLOCK, u->run, len, &u->failure);
		i += n;
	}
	return ret;
}

int undo_drain(struct undo_io *u)
{
	int ret = 0;

	if (!u->num_pages)
		return 0;
	for (size_t i = 0, n; !ret && i < u->num_pages; i += n) {
		n = run_of_pages(u, i);
		ret = announce_run(u, i, n);
	}
	if (!ret)
		ret = undo_log_sync(u->log, &u->failure);
	if (!ret)
		ret = write_pages(u);
	if (ret)
		u->lost = u->failure;
	u->num_pages = 0;
	return ret;
}

size_t undo_page_from(const struct undo_io *u, uint64_t block)
{
	size_t low = 0, high = u->num_pages;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (u->pages[mid].number < block)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int undo_put(struct undo_io *u, uint64_t block, size_t at, const uint8_t *from, size_t len)
{
	size_t i = undo_page_from(u, block);
	int ret = 0;

	if (i == u->num_pages || u->pages[i].number != block) {
		uint8_t *slot;

		if (u->num_pages == UNDO_PAGES) {
			ret = undo_drain(u);
			i = 0;
		}
		slot = u->pool + u->num_pages * UNDO_BLOCK;
		if (!ret && len < block_bytes(u, block))
			ret = btrkit_io_read(u->below, block * UNDO_BLOCK, slot, block_bytes(u, block), &u->failure);
		if (ret)
			return ret;
		memmove(u->pages + i + 1, u->pages + i, (u->num_pages - i) * sizeof(u->pages[0]));
		u->pages[i] = (struct undo_page){ block, (unsigned)u->num_pages };
		u->num_pages++;
	}
	memcpy(u->pool + (size_t)u->pages[i].slot * UNDO_BLOCK + at, from, len);
	return 0;
}
