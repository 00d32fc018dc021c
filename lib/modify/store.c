// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/modify/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/compression/encode.h"
#include "lib/base/err.h"
#include "lib/base/pipeline.h"

#define UNIT (1u << 20)		 /* bytes of a unit of work, uncompressed */
#define ONE_THREAD (4u * ENCODE_MAX) /* up to this many bytes threads do not pay */

/* A unit of work. */
struct slot {
	struct store *s;
	uint64_t from; /* in the file */
	size_t len;
	struct range at; /* uncompressed: where it is written; compressed: unset until the size is known */
	/* Only for compression. */
	struct encoder *encoder;
	uint8_t *plain, *packed; /* ENCODE_MAX bytes each */
	size_t stored;		 /* bytes of @packed, whole sectors; 0: compression does not pay */
	uint8_t *sums;
	size_t num_sums;
};

/* Gets a pointer to the bytes at an offset; *@len is reduced to what is contiguous. */
static const uint8_t *run_at(const struct store_bytes *b, uint32_t sector, uint64_t from, size_t *len)
{
	const uint8_t *at;
	uint64_t room = sector;

	if (b->head && from < b->start + sector) {
		at = b->head + (from - b->start);
		room = b->start + sector - from;
	} else if (b->tail && from >= b->end - sector) {
		at = b->tail + (from - (b->end - sector));
		room = b->end - from;
	} else {
		at = b->body + (from - b->body_start);
		room = b->body_end - from;
	}
	if (*len > room)
		*len = (size_t)room;
	return at;
}

void store_bytes_copy(const struct store_bytes *b, uint32_t sector, uint64_t from, size_t len, uint8_t *to)
{
	while (len) {
		size_t n = len;
		const uint8_t *at = run_at(b, sector, from, &n);

		memcpy(to, at, n);
		from += n;
		to += n;
		len -= n;
	}
}

static uint32_t sector_of(const struct slot *t)
{
	return t->s->op->txn->fs->geometry.sectorsize;
}

static void sum_up(struct slot *t, const uint8_t *data, size_t len)
{
	const struct csum_kind *csum = t->s->op->txn->fs->geometry.csum;
	const uint32_t sector = sector_of(t);

	for (size_t at = 0; t->s->sums && at < len; at += sector)
		csum->compute(data + at, sector, t->sums + t->num_sums++ * csum->size);
}

/* Writes uncompressed data to its place. */
static int work_plain(struct slot *t, struct btrkit_error *err)
{
	int ret = 0;

	t->num_sums = 0;
	for (size_t done = 0, n; !ret && done < t->len; done += n) {
		const uint8_t *at;

		n = t->len - done;
		at = run_at(t->s->bytes, sector_of(t), t->from + done, &n);
		sum_up(t, at, n);
		ret = data_write(t->s->op, t->at.start + done, at, n, err);
	}
	return ret;
}

static int work_packed(struct slot *t, struct btrkit_error *err)
{
	const uint32_t sector = sector_of(t);
	const uint8_t *from;
	size_t n = t->len, got;
	int ret;

	t->num_sums = 0;
	t->stored = 0;
	from = run_at(t->s->bytes, sector, t->from, &n);
	if (n < t->len) {
		store_bytes_copy(t->s->bytes, sector, t->from, t->len, t->plain);
		from = t->plain;
	}
	ret = t->len <= sector ? 1 : encoder_run(t->encoder, from, t->len, t->packed, t->len - sector, &got, err);
	if (ret)
		return ret < 0 ? ret : 0;
	t->stored = (size_t)sector_up(t->s->op, got);
	memset(t->packed + got, 0, t->stored - got);
	sum_up(t, t->packed, t->stored);
	return 0;
}

static int work(void *ctx, void *slot, struct btrkit_error *err)
{
	const struct store *s = ctx;

	return s->compression ? work_packed(slot, err) : work_plain(slot, err);
}

static void note_piece(struct store *s, uint64_t offset, const struct range *at, uint64_t num, uint8_t compression)
{
	s->pieces[s->n++] = (struct store_piece){ offset, { .generation = s->op->txn->generation,
							    .ram_bytes = num,
							    .compression = compression,
							    .type = FILE_EXTENT_REG,
							    .disk_bytenr = at->start,
							    .disk_num_bytes = at->length,
							    .num_bytes = num } };
}

static int too_many(struct btrkit_error *err)
{
	return err_set(err, BTRKIT_NO_SPACE, "free space is too fragmented");
}

/* Allocates space for uncompressed data, in as few extents as possible. */
static int place_new(struct store *s, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	int ret = 0;

	while (!ret && from < to) {
		struct range r;

		if (s->n == STORE_PIECES)
			return too_many(err);
		ret = data_alloc(s->op, s->op->txn->fs->geometry.sectorsize, to - from, &r, err);
		if (ret)
			break;
		note_piece(s, from, &r, r.length, COMPRESS_NONE);
		from += r.length;
	}
	return ret;
}

/* Finds the next preallocated extent from @from on that may be written in place. @return 0; 1: there is none; <0 */
static int next_prealloc(struct store *s, uint64_t from, uint64_t to, struct extent_at *x, struct btrkit_error *err)
{
	int ret;

	for (; from < to; from = x->end) {
		ret = extents_next(s->op, s->inode, from, to, x, err);
		if (ret)
			return ret;
		if (x->fe.type != FILE_EXTENT_PREALLOC || !x->fe.disk_bytenr)
			continue;
		ret = data_is_own(s->op, s->inode, x, err);
		if (ret <= 0)
			return ret;
	}
	return 1;
}

static int place(struct store *s, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	int ret = 0;

	while (!ret && from < to) {
		uint64_t start = to, end = to;
		struct extent_at x;

		ret = s->prealloc ? next_prealloc(s, from, to, &x, err) : 1;
		if (ret < 0)
			break;
		if (!ret) {
			start = x.key.offset > from ? x.key.offset : from;
			end = x.end < to ? x.end : to;
		}
		ret = place_new(s, from, start, err);
		from = end;
		if (ret || start == end)
			continue;
		if (s->n == STORE_PIECES)
			return too_many(err);
		x.fe.generation = s->op->txn->generation;
		x.fe.type = FILE_EXTENT_REG;
		x.fe.offset += start - x.key.offset;
		x.fe.num_bytes = end - start;
		s->pieces[s->n++] = (struct store_piece){ start, x.fe };
	}
	return ret;
}

static void keep_sums(struct slot *t)
{
	const size_t size = t->s->op->txn->fs->geometry.csum->size;

	memcpy(t->s->sum_bytes + t->s->num_sums * size, t->sums, t->num_sums * size);
	t->s->num_sums += t->num_sums;
}

/* Stores data that does not compress. */
static int finish_plain(struct slot *t, struct btrkit_error *err)
{
	struct store *s = t->s;
	const uint64_t from = t->from, end = from + t->len;
	unsigned i = s->n;
	int ret = place_new(s, from, end, err);

	for (; !ret && i < s->n; i++) {
		const struct store_piece *p = &s->pieces[i];

		t->from = p->offset;
		t->len = (size_t)p->fe.num_bytes;
		t->at = (struct range){ p->fe.disk_bytenr, p->fe.num_bytes };
		ret = work_plain(t, err);
		keep_sums(t);
	}
	return ret;
}

static int finish(void *ctx, void *slot, struct btrkit_error *err)
{
	struct store *s = ctx;
	struct slot *t = slot;
	struct range r;
	int ret;

	if (!s->compression) {
		keep_sums(t);
		return 0;
	}
	ret = t->stored ? data_alloc(s->op, t->stored, t->stored, &r, err) : 1;
	/* Uncompressed, the data may be split into several free ranges. */
	if (ret == 1 || (ret == -ENOSPC && !failure_is_set(s->op->txn->failure)))
		return finish_plain(t, err);
	if (ret)
		return ret;
	if (s->n == STORE_PIECES)
		return too_many(err);
	note_piece(s, t->from, &r, t->len, s->compression);
	keep_sums(t);
	return data_write(s->op, r.start, t->packed, t->stored, err);
}

static void release_slot(struct slot *t)
{
	encoder_destroy(t->encoder);
	free(t->plain);
	free(t->packed);
	free(t->sums);
}

static int init_slot(struct slot *t, struct store *s, struct btrkit_error *err)
{
	const uint32_t sector = s->op->txn->fs->geometry.sectorsize, unit = s->compression ? ENCODE_MAX : UNIT;
	int ret;

	*t = (struct slot){ .s = s };
	t->sums = malloc((size_t)unit / sector * s->op->txn->fs->geometry.csum->size);
	if (!t->sums)
		return err_nomem(err);
	if (!s->compression)
		return 0;
	ret = encoder_create(s->compression, s->level, sector, &t->encoder, err);
	if (ret)
		return ret;
	t->plain = malloc(ENCODE_MAX);
	t->packed = malloc(ENCODE_MAX);
	return t->plain && t->packed ? 0 : err_nomem(err);
}

static int give_out(struct pipeline *p, uint64_t from, size_t len, const struct range *at, struct btrkit_error *err)
{
	struct slot *t;
	void *slot;
	int ret = pipeline_next(p, &slot, err);

	if (ret)
		return ret;
	t = slot;
	t->from = from;
	t->len = len;
	if (at)
		t->at = *at;
	pipeline_submit(p);
	return 0;
}

static int give_out_all(struct store *s, struct pipeline *p, uint64_t from, uint64_t to, struct btrkit_error *err)
{
	const unsigned n = s->n;
	int ret = 0;

	for (; !ret && s->compression && from < to; from += ENCODE_MAX)
		ret = give_out(p, from, to - from < ENCODE_MAX ? (size_t)(to - from) : ENCODE_MAX, NULL, err);
	/* All places have been allocated already. */
	for (unsigned i = 0; !ret && !s->compression && i < n; i++) {
		const struct file_extent *fe = &s->pieces[i].fe;

		for (uint64_t at = 0; !ret && at < fe->num_bytes; at += UNIT) {
			const uint64_t len = fe->num_bytes - at < UNIT ? fe->num_bytes - at : UNIT;
			const struct range r = { fe->disk_bytenr + fe->offset + at, len };

			ret = give_out(p, s->pieces[i].offset + at, (size_t)len, &r, err);
		}
	}
	return ret ? ret : pipeline_drain(p, err);
}

static unsigned num_threads(const struct store *s, uint64_t len)
{
	const uint64_t pieces = len / (s->compression ? ENCODE_MAX : UNIT);
	unsigned threads = pipeline_threads(s->threads);

	if (pieces < threads)
		threads = (unsigned)pieces;
	/* 0: the caller's thread does the work. */
	return len <= ONE_THREAD || threads < 2 ? 0 : threads;
}

static int run_slots(struct store *s, unsigned threads, struct slot *slots, void **list, unsigned n, uint64_t from,
		     uint64_t to, struct btrkit_error *err)
{
	const struct pipeline_ops ops = { work, finish, s };
	struct pipeline *p = NULL;
	int ret = 0;

	for (unsigned i = 0; !ret && i < n; i++) {
		list[i] = &slots[i];
		ret = init_slot(&slots[i], s, err);
	}
	if (!ret)
		ret = pipeline_create(&ops, threads, list, n, &p, err);
	if (ret == -EAGAIN)
		ret = pipeline_create(&ops, 0, list, n, &p, err);
	if (!ret)
		ret = give_out_all(s, p, from, to, err);
	pipeline_destroy(p);
	for (unsigned i = 0; i < n; i++)
		release_slot(&slots[i]);
	return ret;
}

int store_run(struct store *s, struct btrkit_error *err)
{
	const uint64_t from = s->bytes->start, to = s->bytes->end;
	const unsigned threads = num_threads(s, to - from), n = threads ? 2 * threads + 2 : 1;
	struct slot *slots;
	void **list;
	int ret;

	s->n = 0;
	s->num_sums = 0;
	s->sum_bytes = NULL;
	ret = s->compression ? 0 : place(s, from, to, err);
	if (ret)
		return ret;
	s->sum_bytes = malloc((size_t)(to - from) / s->op->txn->fs->geometry.sectorsize *
			      s->op->txn->fs->geometry.csum->size);
	slots = calloc(n, sizeof(*slots));
	list = calloc(n, sizeof(*list));
	ret = s->sum_bytes && slots && list ? run_slots(s, threads, slots, list, n, from, to, err) : err_nomem(err);
	free(list);
	free(slots);
	return ret;
}

int store_add_sums(struct store *s, struct btrkit_error *err)
{
	const uint32_t sector = s->op->txn->fs->geometry.sectorsize;
	const uint8_t *at = s->sum_bytes;
	int ret = 0;

	for (unsigned i = 0; !ret && s->sums && i < s->n; i++) {
		const struct file_extent *fe = &s->pieces[i].fe;
		const size_t n = (size_t)((fe->compression ? fe->disk_num_bytes : fe->num_bytes) / sector);

		ret = data_add_sums(s->op, fe->disk_bytenr + fe->offset, at, n, err);
		at += n * s->op->txn->fs->geometry.csum->size;
	}
	return ret;
}

struct store *store_free(struct store *s)
{
	if (s)
		free(s->sum_bytes);
	free(s);
	return NULL;
}
