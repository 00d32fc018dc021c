// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing without effect, to find out what an operation would do. */
#include "lib/io/dry.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/hash.h"

#define BLOCK_BYTES 4096u

struct dry_block {
	uint64_t number;
	uint8_t bytes[BLOCK_BYTES];
	UT_hash_handle hh;
};

struct dry_io {
	struct btrkit_io io;
	struct btrkit_io *below;
	pthread_rwlock_t lock; /* of the blocks */
	struct dry_block *blocks;
};

static struct dry_block *find(const struct dry_io *d, uint64_t number)
{
	struct dry_block *b;

	HASH_FIND(hh, d->blocks, &number, sizeof(number), b);
	return b;
}

static size_t lower(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int dry_read(struct btrkit_io *io, uint64_t offset, void *buf, size_t len)
{
	struct dry_io *d = (struct dry_io *)io;
	uint8_t *to = buf;
	int ret;

	pthread_rwlock_rdlock(&d->lock);
	ret = d->below->ops->read(d->below, offset, buf, len);
	while (!ret && len && d->blocks) {
		const size_t from = offset % BLOCK_BYTES, n = lower(len, BLOCK_BYTES - from);
		const struct dry_block *b = find(d, offset / BLOCK_BYTES);

		if (b)
			memcpy(to, b->bytes + from, n);
		offset += n;
		to += n;
		len -= n;
	}
	pthread_rwlock_unlock(&d->lock);
	return ret;
}

/* Adds a block with the contents that the device has. @return NULL: *ret has a negative errno */
static struct dry_block *add_block(struct dry_io *d, uint64_t number, int *ret)
{
	const uint64_t start = number * BLOCK_BYTES, left = d->below->size - start;
	struct dry_block *b = calloc(1, sizeof(*b));

	*ret = -ENOMEM;
	if (!b)
		return NULL;
	b->number = number;
	*ret = d->below->ops->read(d->below, start, b->bytes, left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES);
	if (*ret) {
		free(b);
		return NULL;
	}
	HASH_ADD(hh, d->blocks, number, sizeof(b->number), b);
	if (b->hh.tbl)
		return b;
	free(b);
	*ret = -ENOMEM;
	return NULL;
}

static int dry_write(struct btrkit_io *io, uint64_t offset, const void *buf, size_t len)
{
	struct dry_io *d = (struct dry_io *)io;
	const uint8_t *from = buf;
	int ret = 0;

	pthread_rwlock_wrlock(&d->lock);
	while (!ret && len) {
		const size_t at = offset % BLOCK_BYTES, n = lower(len, BLOCK_BYTES - at);
		struct dry_block *b = find(d, offset / BLOCK_BYTES);

		if (!b)
			b = add_block(d, offset / BLOCK_BYTES, &ret);
		if (b)
			memcpy(b->bytes + at, from, n);
		offset += n;
		from += n;
		len -= n;
	}
	pthread_rwlock_unlock(&d->lock);
	return ret;
}

static int dry_flush(struct btrkit_io *io)
{
	(void)io;
	return 0;
}

static int dry_zone(struct btrkit_io *io, uint64_t offset, struct btrkit_zone *ret)
{
	struct btrkit_io *below = ((struct dry_io *)io)->below;

	return below->ops->zone ? below->ops->zone(below, offset, ret) : 1;
}

static void dry_prefetch(struct btrkit_io *io, uint64_t offset, uint64_t len)
{
	struct btrkit_io *below = ((struct dry_io *)io)->below;

	if (below->ops->prefetch)
		below->ops->prefetch(below, offset, len);
}

static void dry_close(struct btrkit_io *io)
{
	struct dry_io *d = (struct dry_io *)io;
	struct dry_block *b, *next;

	HASH_ITER(hh, d->blocks, b, next) {
		HASH_DEL(d->blocks, b);
		free(b);
	}
	pthread_rwlock_destroy(&d->lock);
	free(d);
}

static const struct btrkit_io_ops dry_ops = {
	.read = dry_read,
	.write = dry_write,
	.flush = dry_flush,
	.prefetch = dry_prefetch,
	.zone = dry_zone,
	.close = dry_close,
};

int io_dry(struct btrkit_io *below, struct btrkit_io **ret, struct btrkit_error *err)
{
	struct dry_io *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(err);
	d->io.ops = &dry_ops;
	d->io.size = below->size;
	snprintf(d->io.name, sizeof(d->io.name), "%s", below->name);
	d->below = below;
	pthread_rwlock_init(&d->lock, NULL);
	*ret = &d->io;
	return 0;
}
