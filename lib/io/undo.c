// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A backend that keeps in an undo file what it overwrites. Writes wait in memory, so that what many of them overwrite
 * goes to the file with one flush of it before they go to the device.
 */
#include "lib/io/undo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/crc32c.h"
#include "lib/base/err.h"
#include "lib/base/hash.h"
#include "lib/base/zero.h"
#include "lib/format/super.h"
#include "lib/io/undo_log.h"
#include "lib/io/zone.h"

#define PAGES 2048u	/* blocks that wait at the most */
#define WINDOW_BLOCKS (UNDO_WINDOW / UNDO_BLOCK)
#define LEAF_BLOCKS 4096u	/* a multiple of WINDOW_BLOCKS */

/* A block that waits to be written. */
struct page {
	uint64_t number;	/* of the block */
	unsigned slot;		/* where in the pool its bytes are */
};

/* Which blocks of a stretch of the device the file has. */
struct leaf {
	uint64_t number;
	uint64_t bits[LEAF_BLOCKS / 64];
	UT_hash_handle hh;
};

struct undo_io {
	struct btrkit_io io;
	struct btrkit_io *below;
	struct undo_log *log;
	unsigned device;	/* number in the file */
	struct leaf *saved;
	struct page pages[PAGES];	/* in the order of blocks */
	size_t num_pages;
	uint8_t *pool;		/* bytes of all pages */
	uint8_t *run;		/* a window's bytes */
	struct btrkit_error failure;	/* of the latest call: it may be about another range than the call is */
	struct btrkit_error lost;	/* why pages never reached the device: from then on nothing is taken */
};

static size_t block_bytes(const struct undo_io *u, uint64_t number)
{
	uint64_t left = u->io.size - number * UNDO_BLOCK;

	return left < UNDO_BLOCK ? (size_t)left : UNDO_BLOCK;
}

/* Bytes of @n blocks, of which the last may be the device's last. */
static size_t blocks_bytes(const struct undo_io *u, uint64_t first, size_t n)
{
	return (n - 1) * UNDO_BLOCK + block_bytes(u, first + n - 1);
}

static struct leaf *leaf_of(const struct undo_io *u, uint64_t block)
{
	const uint64_t number = block / LEAF_BLOCKS;
	struct leaf *leaf;

	HASH_FIND(hh, u->saved, &number, sizeof(number), leaf);
	return leaf;
}

static bool is_saved(const struct undo_io *u, uint64_t block)
{
	const struct leaf *leaf = leaf_of(u, block);

	return leaf && leaf->bits[block % LEAF_BLOCKS / 64] >> block % 64 & 1;
}

/* The leaf is there before the file has the blocks: to forget that it has them would save them twice. */
static struct leaf *make_leaf(struct undo_io *u, uint64_t block)
{
	struct leaf *leaf = leaf_of(u, block);

	if (leaf)
		return leaf;
	leaf = calloc(1, sizeof(*leaf));
	if (!leaf)
		return NULL;
	leaf->number = block / LEAF_BLOCKS;
	HASH_ADD(hh, u->saved, number, sizeof(leaf->number), leaf);
	if (leaf->hh.tbl)
		return leaf;
	free(leaf);
	return NULL;
}

static struct disk_undo_record record_of(const struct undo_io *u, enum undo_type type, uint64_t offset, uint64_t len,
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

/* The old contents of @n blocks of one window, none of which the file has. */
static int save_run(struct undo_io *u, uint64_t first, size_t n)
{
	size_t len = blocks_bytes(u, first, n), payload = len;
	struct leaf *leaf = make_leaf(u, first);	/* a window lies in one */
	struct disk_undo_record head;
	int ret;

	if (!leaf)
		return err_nomem(&u->failure);
	ret = btrkit_io_read(u->below, first * UNDO_BLOCK, u->run, len, &u->failure);
	if (ret)
		return ret;
	if (is_all_zeros(u->run, len))
		payload = 0;
	head = record_of(u, UNDO_OLD, first * UNDO_BLOCK, len, payload);
	head.flags = payload ? 0 : UNDO_ZEROS;
	ret = undo_log_append(u->log, &head, u->run, &u->failure);
	for (size_t i = 0; !ret && i < n; i++)
		leaf->bits[(first + i) % LEAF_BLOCKS / 64] |= 1ull << (first + i) % 64;
	return ret;
}

/* What the file lacks of the blocks from @first up to @end. */
static int save_blocks(struct undo_io *u, uint64_t first, uint64_t end)
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

/* How many pages from number @i on are neighbours in one window. */
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

/* Into the file: what was there, and the checksums of what will be. */
static int announce_run(struct undo_io *u, size_t i, size_t n)
{
	uint64_t first = u->pages[i].number;
	le32 sums[UNDO_WINDOW / UNDO_SECTOR];
	struct disk_undo_record head;
	uint32_t sectors;
	size_t len;
	int ret;

	ret = save_blocks(u, first, first + n);
	if (ret)
		return ret;
	len = gather(u, i, n);
	sectors = undo_sectors(len);
	for (uint32_t s = 0; s < sectors; s++) {
		size_t at = (size_t)s * UNDO_SECTOR, left = len - at;

		sums[s] = le32_put(crc32c(~0u, u->run + at, left < UNDO_SECTOR ? left : UNDO_SECTOR));
	}
	head = record_of(u, UNDO_NEW, first * UNDO_BLOCK, len, sectors * sizeof(sums[0]));
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

/* Writes out what waits; after a failure what was not written is lost, though its writes were said to be done. */
static int drain(struct undo_io *u)
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

/* The index of the first page from @block on. */
static size_t page_from(const struct undo_io *u, uint64_t block)
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

/* Bytes of a block, which may be all of them. */
static int write_block(struct undo_io *u, uint64_t block, size_t at, const uint8_t *from, size_t len)
{
	size_t i = page_from(u, block);
	int ret = 0;

	if (i == u->num_pages || u->pages[i].number != block) {
		uint8_t *slot;

		if (u->num_pages == PAGES) {
			ret = drain(u);
			i = 0;
		}
		slot = u->pool + u->num_pages * UNDO_BLOCK;
		if (!ret && len < block_bytes(u, block))
			ret = btrkit_io_read(u->below, block * UNDO_BLOCK, slot, block_bytes(u, block), &u->failure);
		if (ret)
			return ret;
		memmove(u->pages + i + 1, u->pages + i, (u->num_pages - i) * sizeof(u->pages[0]));
		u->pages[i] = (struct page){ block, (unsigned)u->num_pages };
		u->num_pages++;
	}
	memcpy(u->pool + (size_t)u->pages[i].slot * UNDO_BLOCK + at, from, len);
	return 0;
}

static void lock(struct undo_io *u)
{
	pthread_mutex_lock(&u->log->lock);
	u->failure.err = 0;
}

static int unlock(struct undo_io *u, int ret)
{
	pthread_mutex_unlock(&u->log->lock);
	return ret;
}

/* Whether the file or the device has failed, so that nothing is written any more. @return 0, or of what */
static int refuse(struct undo_io *u)
{
	const struct btrkit_error *first = u->log->failure.err ? &u->log->failure : &u->lost;

	if (first->err)
		u->failure = *first;
	return first->err;
}

static int undo_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	const uint8_t *from = buf;
	int ret;

	lock(u);
	ret = refuse(u);
	while (!ret && len) {
		size_t at = offset % UNDO_BLOCK, n = UNDO_BLOCK - at < len ? UNDO_BLOCK - at : len;

		ret = write_block(u, offset / UNDO_BLOCK, at, from, n);
		from += n;
		offset += n;
		len -= n;
	}
	return unlock(u, ret);
}

static int undo_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	lock(u);
	if (!u->num_pages) {
		unlock(u, 0);
		return u->below->ops->read(u->below, offset, buf, len);
	}
	ret = u->below->ops->read(u->below, offset, buf, len);
	for (size_t i = page_from(u, offset / UNDO_BLOCK); !ret && i < u->num_pages; i++) {
		uint64_t start = u->pages[i].number * UNDO_BLOCK, from = start > offset ? start : offset;
		uint64_t end = start + UNDO_BLOCK;

		if (start >= offset + len)
			break;
		end = end < offset + len ? end : offset + len;
		memcpy((uint8_t *)buf + (from - offset),
		       u->pool + (size_t)u->pages[i].slot * UNDO_BLOCK + (from - start), (size_t)(end - from));
	}
	return unlock(u, ret);
}

static int undo_flush(struct btrkit_io *io)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	lock(u);
	ret = refuse(u);
	if (!ret)
		ret = drain(u);
	unlock(u, 0);
	return ret ? ret : u->below->ops->flush(u->below);
}

/* Nothing would keep what is dropped. */
static int undo_discard(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	(void)io;
	(void)offset;
	(void)len;
	return 0;
}

/* What is announced will be written: its old contents, saved now, get to the disk by the flush for the first write. */
static int undo_reserve(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct undo_io *u = (struct undo_io *)io;
	int ret;

	/* With the lock, that a failure is not explained by one of before. */
	lock(u);
	ret = u->below->ops->reserve ? u->below->ops->reserve(u->below, offset, len) : 0;
	if (!ret)
		ret = save_blocks(u, offset / UNDO_BLOCK, (offset + len + UNDO_BLOCK - 1) / UNDO_BLOCK);
	return unlock(u, ret);
}

static void undo_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct undo_io *u = (struct undo_io *)io;

	if (u->below->ops->prefetch)
		u->below->ops->prefetch(u->below, offset, len);
}

static int undo_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	return io_zone_below(((struct undo_io *)io)->below, offset, ret);
}

static void undo_explain(struct btrkit_io *io, struct btrkit_error *err)
{
	struct undo_io *u = (struct undo_io *)io;

	pthread_mutex_lock(&u->log->lock);
	if (u->failure.err == err->err)
		*err = u->failure;
	unlock(u, 0);
}

static void release(struct undo_io *u)
{
	struct leaf *leaf, *next;

	HASH_ITER(hh, u->saved, leaf, next)
	{
		HASH_DEL(u->saved, leaf);
		free(leaf);
	}
	free(u->pool);
	free(u->run);
	free(u);
}

static void undo_close(struct btrkit_io *io)
{
	struct undo_io *u = (struct undo_io *)io;

	lock(u);
	/* Nobody is left to be told. */
	if (!refuse(u))
		(void)drain(u);
	unlock(u, 0);
	btrkit_io_close(u->below);
	undo_log_drop(u->log);
	release(u);
}

static const struct btrkit_io_ops undo_ops = {
	.read = undo_read,
	.write = undo_write,
	.flush = undo_flush,
	.discard = undo_discard,
	.reserve = undo_reserve,
	.prefetch = undo_prefetch,
	.zone = undo_zone,
	.explain = undo_explain,
	.close = undo_close,
};

const struct btrkit_io *undo_below(const struct btrkit_io *io)
{
	return io->ops == &undo_ops ? ((const struct undo_io *)io)->below : io;
}

static int introduce(struct undo_io *u)
{
	struct disk_undo_device d = { .size = le64_put(u->io.size) };
	struct disk_undo_record head = record_of(u, UNDO_DEVICE, 0, 0, sizeof(d));
	struct disk_super disk;
	struct super s;

	if (!btrkit_io_read(u->below, super_offset(0), &disk, sizeof(disk), NULL) &&
	    !super_decode(&disk, super_offset(0), &s, NULL)) {
		d.devid = le64_put(s.devid);
		d.generation = le64_put(s.generation);
		memcpy(d.fsid, s.fsid, sizeof(d.fsid));
		memcpy(d.dev_uuid, s.dev_uuid, sizeof(d.dev_uuid));
	}
	memcpy(d.name, u->io.name, sizeof(d.name));
	return undo_log_append(u->log, &head, &d, &u->failure);
}

/*
 * The superblocks are saved first, whether they will be written or not: whoever else uses the filesystem writes to
 * them, and undo sees that.
 */
static int begin(struct undo_io *u)
{
	int ret;

	if (u->log->devices == UNDO_DEVICES_MAX)
		return err_set(&u->failure, BTRKIT_INVALID, "too many devices");
	u->device = u->log->devices;
	ret = introduce(u);
	for (unsigned mirror = 0; !ret && mirror < SUPER_MIRRORS; mirror++)
		if (u->io.size >= super_offset(mirror) + SUPER_SIZE)
			ret = save_blocks(u, super_offset(mirror) / UNDO_BLOCK, super_offset(mirror) / UNDO_BLOCK + 1);
	if (!ret)
		u->log->devices++;
	return ret;
}

int undo_io_create(struct undo_log *log, struct btrkit_io *below, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct undo_io *u;
	int r;

	if (!below->ops->write || !below->ops->flush)
		return err_set(err, BTRKIT_INVALID, "is not open for writing");
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_nomem(err);
	u->io.ops = &undo_ops;
	u->io.size = below->size;
	memcpy(u->io.name, below->name, sizeof(u->io.name));
	u->below = below;
	u->log = log;
	u->pool = malloc((size_t)PAGES * UNDO_BLOCK);
	u->run = malloc(UNDO_WINDOW);
	lock(u);
	r = unlock(u, u->pool && u->run ? begin(u) : err_nomem(&u->failure));
	if (r) {
		if (err)
			*err = u->failure;
		release(u);
		return r;
	}
	undo_log_use(log);
	*ret = &u->io;
	return 0;
}

/* The devices that have the log already are their callers' again. */
static void give_back(struct btrkit_io **ios, size_t n)
{
	while (n--) {
		struct undo_io *u = (struct undo_io *)ios[n];

		undo_log_drop(u->log);
		release(u);
	}
}

static int create_all(struct undo_log *log, struct btrkit_io *const *below, size_t n, struct btrkit_io **ios,
		      struct btrkit_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int ret = undo_io_create(log, below[i], &ios[i], err);

		if (ret) {
			if (n > 1)
				err_name(err, below[i]->name);
			give_back(ios, i);
			return ret;
		}
	}
	return 0;
}

static int open_log(const char *file, struct btrkit_io *const *below, size_t n, struct undo_log **ret,
		    struct btrkit_error *err)
{
	struct btrkit_io *io;
	int r = undo_file_create(file, below, n, &io, err);

	if (r)
		return r;
	r = undo_log_create(io, ret, err);
	if (r) {
		undo_file_remove(io);
		btrkit_io_close(io);
	}
	return r;
}

int btrkit_io_undo(struct btrkit_io *const *below, size_t n, const char *file, unsigned flags, struct btrkit_io **ret,
		   struct btrkit_error *err)
{
	struct undo_log *log = NULL;
	struct btrkit_io **ios;
	int r;

	if (flags)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	if (!n || n > UNDO_DEVICES_MAX)
		return err_set(err, BTRKIT_INVALID, "%zu devices", n);
	ios = calloc(n, sizeof(struct btrkit_io *));
	r = ios ? open_log(file, below, n, &log, err) : err_nomem(err);
	if (!r) {
		r = create_all(log, below, n, ios, err);
		undo_log_drop(log);
	}
	if (!r)
		memcpy(ret, ios, n * sizeof(struct btrkit_io *));
	free(ios);
	return r;
}
