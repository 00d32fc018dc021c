// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Verifies the parity of used space. Linux updates parity sector by sector: at an offset in the strips of a full stripe
 * where nothing was ever written, it may have any value. Known to be written are tree blocks, data with checksums, and
 * other data that file extents refer to.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/each.h"
#include "lib/check/data/data_nodatasum.h"
#include "lib/check/data/data_parity.h"
#include "lib/check/data/data_progress.h"
#include "lib/check/findings.h"
#include "lib/check/ranges.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"
#include "lib/io/buffer.h"
#include "lib/volume/parity.h"
#include "lib/volume/raid_map.h"
#include "lib/volume/volume.h"

#define FULL_STRIPES_MAX 8u
#define BYTES_MAX (16ull << 20) /* limit for full stripes read at once; a single full stripe may exceed it */

struct parity {
	struct data_check *d;
	const struct volume_chunk *chunk;
	struct raid_shape shape;
	unsigned data, parities; /* number of strips in a full stripe */
	unsigned full_stripes;	 /* full stripes read at once */
};

/* Some consecutive full stripes. */
struct full_stripes {
	const struct parity *p;
	uint64_t first, n;
	uint64_t start, end;		      /* logical */
	uint32_t columns[FULL_STRIPES_MAX];   /* per full stripe: bits of the sectors of a strip that were written */
	uint32_t nodatasum[FULL_STRIPES_MAX]; /* those with data without checksums */
	uint8_t **stripes;		      /* as read from disk */
	uint8_t *made;			      /* computed P and Q */
};

static uint64_t full_stripe_bytes(const struct parity *p)
{
	return (uint64_t)p->data * CHUNK_STRIPE_LEN;
}

static void mark(struct full_stripes *r, uint64_t start, uint64_t end)
{
	const uint32_t unit = r->p->d->c->items.sectorsize;

	if (start < r->start)
		start = r->start;
	if (end > r->end)
		end = r->end;
	while (start < end) {
		const uint64_t offset = start - r->start, within = offset % CHUNK_STRIPE_LEN;
		uint64_t take = CHUNK_STRIPE_LEN - within;

		if (take > end - start)
			take = end - start;
		for (uint64_t i = within / unit; i * unit < within + take; i++)
			r->columns[offset / full_stripe_bytes(r->p)] |= 1u << i;
		start += take;
	}
}

static void mark_list(struct full_stripes *r, const struct array *list)
{
	const struct range *ranges = list->at;

	for (size_t i = check_ranges_behind(list, r->start); i < list->n && ranges[i].start < r->end; i++)
		mark(r, ranges[i].start, range_end(&ranges[i]));
}

/* @return whether anything was written */
static bool mark_all(struct full_stripes *r)
{
	const struct check *c = r->p->d->c;
	const uint32_t nodesize = c->items.nodesize;
	bool any = false;
	size_t low;

	mark_list(r, &c->nodatasum);
	memcpy(r->nodatasum, r->columns, sizeof(r->nodatasum));
	mark_list(r, &c->csums);
	low = check_table_lower_bound(&c->tables.blocks, r->start > nodesize ? r->start - nodesize + 1 : 0, NULL);
	for (; low < c->tables.blocks.n; low++) {
		const struct check_block *b = check_block_at(&c->tables, low);

		if (check_block_bytenr(b) >= r->end)
			break;
		if (!(b->tagged & (CHECK_BLOCK_STRAY | CHECK_BLOCK_DOUBT)))
			mark(r, check_block_bytenr(b), check_block_bytenr(b) + nodesize);
	}
	for (unsigned i = 0; i < r->n; i++)
		any |= r->columns[i];
	return any;
}

/* @return whether all stripes could be read */
static bool read_stripes(struct full_stripes *r)
{
	const struct parity *p = r->p;

	for (unsigned i = 0; i < p->shape.num_stripes; i++) {
		const struct volume_stripe *s = &p->chunk->stripes[i];
		struct btrkit_io *io = volume_device(p->d->c->fs->volume, s->device).io;
		const uint64_t at = s->physical + r->first * CHUNK_STRIPE_LEN;

		if (!io)
			return false;
		if (btrkit_io_read(io, at, r->stripes[i], r->n * CHUNK_STRIPE_LEN, NULL)) {
			check_report_at(p->d->c, CHECK_DATA_PARITY,
					&(struct check_location){
						.logical = r->start, .devid = s->devid, .physical = at },
					"cannot read strips to verify their parity");
			return false;
		}
	}
	return true;
}

/* Whether a full stripe has data that was reported as damaged; its parity may be right. */
static bool has_bad(const struct full_stripes *r, uint64_t start)
{
	const struct data_check *d = r->p->d;
	size_t low = 0, high = d->num_bad;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (d->bad[mid] < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < d->num_bad && d->bad[low] - start < full_stripe_bytes(r->p);
}

static void compare(const struct full_stripes *r, unsigned full_stripe, unsigned which)
{
	const struct parity *p = r->p;
	const uint32_t unit = p->d->c->items.sectorsize;
	const unsigned stripe = raid_strip_stripe(&p->shape, r->first + full_stripe, p->data + which);
	const uint8_t *found = r->stripes[stripe] + (size_t)full_stripe * CHUNK_STRIPE_LEN;
	const uint8_t *made = r->made + (size_t)which * CHUNK_STRIPE_LEN;
	const uint64_t start = r->start + full_stripe * full_stripe_bytes(p);
	const struct volume_stripe *s = &p->chunk->stripes[stripe];
	/* A stale device missed parity, too. */
	const bool stale = volume_is_stale(p->d->c->fs->volume, s->devid);

	for (uint32_t i = 0; i < CHUNK_STRIPE_LEN / unit; i++) {
		const size_t at = (size_t)i * unit;

		if (!(r->columns[full_stripe] & 1u << i) || !memcmp(found + at, made + at, unit) || has_bad(r, start))
			continue;
		check_report_at(p->d->c, CHECK_DATA_PARITY,
				&(struct check_location){
					.logical = start + at,
					.devid = s->devid,
					.physical = s->physical + (r->first + full_stripe) * CHUNK_STRIPE_LEN + at,
					.cause = stale ? BTRKIT_CAUSE_DEVICE_STALE : BTRKIT_CAUSE_OTHER },
				"%s parity does not match the data of its full stripe%s", which ? "Q" : "P",
				r->nodatasum[full_stripe] & 1u << i ? ", some of which has no checksums" : "");
	}
}

static void check_full_stripes(struct full_stripes *r)
{
	const struct parity *p = r->p;
	uint8_t *data[PARITY_STRIPS_MAX];
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	for (unsigned full_stripe = 0; full_stripe < r->n; full_stripe++) {
		int ret;

		if (!r->columns[full_stripe])
			continue;
		for (unsigned i = 0; i < p->data; i++)
			data[i] = r->stripes[raid_strip_stripe(&p->shape, r->first + full_stripe, i)] +
				  (size_t)full_stripe * CHUNK_STRIPE_LEN;
		ret = parity_generate(p->data, CHUNK_STRIPE_LEN, data, r->made,
				      p->parities > 1 ? r->made + CHUNK_STRIPE_LEN : NULL, &err);
		if (ret) {
			check_fail(p->d->c, ret, &err);
			return;
		}
		for (unsigned which = 0; which < p->parities; which++)
			compare(r, full_stripe, which);
	}
}

static void read_and_check(struct full_stripes *r)
{
	const struct parity *p = r->p;
	const size_t len = (size_t)r->n * CHUNK_STRIPE_LEN;
	uint8_t *bytes = io_buffer(len * p->shape.num_stripes);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	r->stripes = calloc(p->shape.num_stripes, sizeof(*r->stripes));
	r->made = malloc((size_t)p->parities * CHUNK_STRIPE_LEN);
	if (bytes && r->stripes && r->made) {
		for (unsigned i = 0; i < p->shape.num_stripes; i++)
			r->stripes[i] = bytes + i * len;
		if (read_stripes(r))
			check_full_stripes(r);
	} else {
		check_fail(p->d->c, err_nomem(&err), &err);
	}
	free(bytes);
	free(r->stripes);
	free(r->made);
}

static uint64_t num_full_stripes(const struct parity *p)
{
	return p->chunk->stripe_length / CHUNK_STRIPE_LEN;
}

static void work(void *ctx, size_t i)
{
	const struct parity *p = ctx;
	struct full_stripes r = { .p = p, .first = (uint64_t)i * p->full_stripes };

	if (check_failed(p->d->c))
		return;
	r.n = num_full_stripes(p) - r.first < p->full_stripes ? num_full_stripes(p) - r.first : p->full_stripes;
	r.start = p->chunk->logical + r.first * full_stripe_bytes(p);
	r.end = r.start + r.n * full_stripe_bytes(p);
	if (mark_all(&r))
		read_and_check(&r);
	data_progress(p->d, r.n * full_stripe_bytes(p));
}

static bool wanted(const struct volume_chunk *chunk)
{
	return raid_profile_find(chunk->type)->parity && parity_available() && chunk->num_stripes <= PARITY_STRIPS_MAX;
}

uint64_t data_parity_bytes(const struct check *c)
{
	const struct volume *v = c->fs->volume;
	uint64_t bytes = 0;

	for (size_t i = 0; i < volume_num_chunks(v); i++)
		if (wanted(volume_chunk(v, i)))
			bytes += volume_chunk(v, i)->length;
	return bytes;
}

void data_check_parity(struct data_check *d)
{
	const struct volume *v = d->c->fs->volume;

	data_sort_nodatasum(d->c);
	qsort(d->bad, d->num_bad, sizeof(*d->bad), check_compare_numbers);
	for (size_t i = 0; i < volume_num_chunks(v) && !check_failed(d->c); i++) {
		const struct volume_chunk *chunk = volume_chunk(v, i);
		struct parity p = { .d = d, .chunk = chunk, .shape = { chunk->type, chunk->num_stripes } };

		if (!wanted(chunk))
			continue;
		p.data = raid_data_stripes(&p.shape);
		p.parities = chunk->num_stripes - p.data;
		p.full_stripes = (unsigned)(BYTES_MAX / ((uint64_t)chunk->num_stripes * CHUNK_STRIPE_LEN));
		if (p.full_stripes > FULL_STRIPES_MAX)
			p.full_stripes = FULL_STRIPES_MAX;
		if (!p.full_stripes)
			p.full_stripes = 1;
		each((size_t)((num_full_stripes(&p) + p.full_stripes - 1) / p.full_stripes), d->c->threads, work, &p);
	}
}
