// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/io/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

struct entry {
	uint64_t offset;	/* on the device */
	size_t len;
	size_t at;		/* position in b->bytes; it grows with every write, and thus gives their order */
};

struct io_batch {
	struct btrkit_io *io;
	uint8_t *bytes;
	size_t used, budget;
	struct entry *entries;
	size_t n, room;
	uint64_t place; /* of the last write */
};

int io_batch_create(struct btrkit_io *io, size_t budget, struct io_batch **ret, struct btrkit_error *err)
{
	struct io_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return err_nomem(err);
	b->io = io;
	b->budget = budget;
	b->bytes = malloc(budget ? budget : 1);
	if (!b->bytes) {
		free(b);
		return err_nomem(err);
	}
	*ret = b;
	return 0;
}

struct io_batch *io_batch_destroy(struct io_batch *b)
{
	if (b) {
		free(b->entries);
		free(b->bytes);
		free(b);
	}
	return NULL;
}

static int by_offset(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Writes @n adjacent or overlapping entries, up to @end, with one call. */
static int write_run(struct io_batch *b, struct entry *first, size_t n, uint64_t end, struct btrkit_error *err)
{
	uint64_t start = first->offset;
	size_t len = (size_t)(end - start);
	uint8_t *run;
	int ret;

	b->place = start;
	if (n == 1)
		return btrkit_io_write(b->io, start, b->bytes + first->at, len, err);
	run = malloc(len);
	if (!run)
		return err_nomem(err);
	qsort(first, n, sizeof(*first), by_time);
	for (size_t i = 0; i < n; i++)
		memcpy(run + (first[i].offset - start), b->bytes + first[i].at, first[i].len);
	ret = btrkit_io_write(b->io, start, run, len, err);
	free(run);
	return ret;
}

int io_batch_drain(struct io_batch *b, struct btrkit_error *err)
{
	size_t first = 0, n = b->n;
	int ret = 0;

	if (n)
		qsort(b->entries, n, sizeof(*b->entries), by_offset);
	while (first < n && !ret) {
		uint64_t end = b->entries[first].offset + b->entries[first].len;
		size_t next = first + 1;

		for (; next < n && b->entries[next].offset <= end; next++)
			if (b->entries[next].offset + b->entries[next].len > end)
				end = b->entries[next].offset + b->entries[next].len;
		ret = write_run(b, b->entries + first, next - first, end, err);
		first = next;
	}
	b->n = 0;
	b->used = 0;
	return ret;
}

/* The most common case: adjacent on the device and in the queue. */
static bool extends_last(const struct io_batch *b, uint64_t offset)
{
	return b->n && b->entries[b->n - 1].offset + b->entries[b->n - 1].len == offset;
}

static int append(struct io_batch *b, uint64_t offset, const void *data, size_t len, struct btrkit_error *err)
{
	if (extends_last(b, offset)) {
		b->entries[b->n - 1].len += len;
	} else {
		if (b->n == b->room) {
			size_t room = b->room ? 2 * b->room : 64;
			struct entry *more = reallocarray(b->entries, room, sizeof(*more));

			if (!more)
				return err_nomem(err);
			b->entries = more;
			b->room = room;
		}
		b->entries[b->n++] = (struct entry){ offset, len, b->used };
	}
	memcpy(b->bytes + b->used, data, len);
	b->used += len;
	return 0;
}

/* Entries count as well, since with many small writes they take more memory than the data. */
bool io_batch_has_room(const struct io_batch *b, size_t len)
{
	size_t taken = b->used + b->n * sizeof(struct entry);

	return taken < b->budget && len <= b->budget - taken;
}

int io_batch_write(struct io_batch *b, uint64_t offset, const void *data, size_t len, struct btrkit_error *err)
{
	int ret;

	if (!len)
		return 0;
	/* Report the error here, for this write, and not later for a combined one. */
	if (len > b->io->size || offset > b->io->size - len)
		return err_set(err, BTRKIT_NO_SPACE, "write of %zu bytes at %" PRIu64 " is past the end of the device",
			       len, offset);
	if (!io_batch_has_room(b, len)) {
		ret = io_batch_drain(b, err);
		if (ret)
			return ret;
		b->place = offset;
		if (!io_batch_has_room(b, len))
			return btrkit_io_write(b->io, offset, data, len, err);
	}
	return append(b, offset, data, len, err);
}

uint64_t io_batch_place(const struct io_batch *b)
{
	return b->place;
}
