// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verifies every copy of a piece of data against its checksums. */
#include <stdlib.h>
#include <string.h>

#include "lib/check/data/data_progress.h"
#include "lib/check/data/data_sectors.h"
#include "lib/check/findings.h"
#include "lib/check/log/log_ranges.h"
#include "lib/check/state.h"
#include "lib/check/trees/table.h"
#include "lib/io/buffer.h"
#include "lib/sweep/copies.h"
#include "lib/volume/volume.h"

struct sectors {
	struct data_check *d;
	const struct data_piece *p;
	size_t n;
	unsigned copies;
	uint8_t *buf;
	/* For each sector, a bit for each copy. */
	uint8_t *good, *bad;
};

static bool sum_fits(const struct sectors *s, size_t i, const uint8_t *data)
{
	const struct item_ctx *items = &s->d->c->items;
	uint8_t sum[CSUM_SIZE_MAX];

	s->d->c->fs->geometry.csum->compute(data, items->sectorsize, sum);
	return !memcmp(sum, s->p->sums + i * items->csum_size, items->csum_size);
}

/* Verifies a part of a copy, from sector @first on. If it cannot be read at once, reads it sector by sector. */
static void check_part(struct sectors *s, const struct copy *copy, unsigned mirror, size_t first)
{
	const uint32_t unit = s->d->c->items.sectorsize;
	const size_t n = copy->length / unit;
	const bool whole = !btrkit_io_read(copy->io, copy->physical, s->buf, n * unit, NULL);

	for (size_t i = 0; i < n; i++) {
		uint8_t *data = s->buf + i * unit;
		const bool there = whole || !btrkit_io_read(copy->io, copy->physical + i * unit, data, unit, NULL);

		if (there && sum_fits(s, first + i, data))
			s->good[first + i] |= (uint8_t)(1 << mirror);
		else
			s->bad[first + i] |= (uint8_t)(1 << mirror);
	}
}

/* @return whether the copy exists */
static bool check_copy(struct sectors *s, unsigned mirror)
{
	const uint32_t unit = s->d->c->items.sectorsize;
	struct copy copy;

	for (uint64_t pos = 0; pos < s->p->length; pos += copy.length) {
		if (volume_map(s->d->c->fs->volume, s->p->logical + pos, s->p->length - pos, mirror, &copy, NULL))
			return false;
		/* Missing devices are reported elsewhere. */
		if (copy.io)
			check_part(s, &copy, mirror, pos / unit);
	}
	return true;
}

struct wanted {
	const struct sectors *s;
	size_t i;
};

static int verify(void *ctx, const void *buf, struct btrkit_error *err)
{
	const struct wanted *w = ctx;

	return sum_fits(w->s, w->i, buf) ? 0 : err_corrupt(err, "csum", "data checksum mismatch");
}

/* Whether the sector can be rebuilt from the other strips and parity. */
static bool rebuilt(const struct sectors *s, size_t i)
{
	const uint32_t unit = s->d->c->items.sectorsize;
	struct wanted w = { s, i };
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	int ret = volume_read(s->d->c->fs->volume, s->p->logical + i * unit, s->buf, unit, verify, &w, &err);

	if (ret == -ENOMEM)
		check_fail(s->d->c, ret, &err);
	return !ret;
}

static void note_bad(struct data_check *d, uint64_t logical)
{
	pthread_mutex_lock(&d->c->lock);
	if (d->num_bad < DATA_BAD_MAX)
		d->bad[d->num_bad++] = logical;
	pthread_mutex_unlock(&d->c->lock);
}

/* Whether the checksum belongs to any data; if not, that is reported elsewhere. */
static bool is_data(const struct check *c, uint64_t logical)
{
	uint64_t end = UINT64_MAX;

	return c->extents_lost || check_find_extent(&c->tables, logical, c->items.sectorsize, NULL) ||
	       check_log_data(c, logical, &end);
}

static void report_sector(struct sectors *s, size_t i)
{
	struct check *c = s->d->c;
	const uint64_t logical = s->p->logical + i * c->items.sectorsize;
	struct check_location at = { s->p->tree, logical, NULL, NULL };
	struct copy copy;
	bool can;

	if (!is_data(c, logical))
		return;
	can = s->good[i] || rebuilt(s, i);
	note_bad(s->d, logical);
	for (unsigned m = 0; m < s->copies; m++) {
		if (!(s->bad[i] & 1 << m) || volume_map(c->fs->volume, logical, c->items.sectorsize, m, &copy, NULL))
			continue;
		at.devid = copy.devid;
		at.physical = copy.physical;
		at.cause = volume_is_stale(c->fs->volume, copy.devid) ? BTRKIT_CAUSE_DEVICE_STALE : BTRKIT_CAUSE_CSUM;
		check_report_at(c, can ? CHECK_DATA_COPY : CHECK_DATA_CSUM, &at,
				can ? "data checksum mismatch or read error in one copy, but the data is recoverable" :
				      "data checksum mismatch or read error, and the data is not recoverable");
	}
	if (can || s->bad[i])
		return;
	/* All copies are on missing devices; that of the first is told. */
	at.cause = BTRKIT_CAUSE_DEVICE_MISSING;
	if (!volume_map(c->fs->volume, logical, c->items.sectorsize, 0, &copy, NULL)) {
		at.devid = copy.devid;
		at.physical = copy.physical;
	}
	check_report_at(c, CHECK_DATA_CSUM, &at, "no copy of the data can be read");
}

static void check_sectors(struct sectors *s)
{
	const uint8_t *good = s->good;

	while (s->copies < SWEEP_COPIES_MAX && check_copy(s, s->copies))
		s->copies++;
	for (size_t i = 0; i < s->n; i++)
		if (s->bad[i] || !good[i])
			report_sector(s, i);
	pthread_mutex_lock(&s->d->c->lock);
	for (size_t i = 0; i < s->n; i++)
		s->d->c->result.data += (uint64_t)__builtin_popcount(good[i] | s->bad[i]) * s->d->c->items.sectorsize;
	pthread_mutex_unlock(&s->d->c->lock);
}

void data_check_piece(struct data_check *d, const struct data_piece *p)
{
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct sectors s = { .d = d, .p = p, .n = p->length / d->c->items.sectorsize };

	s.buf = io_buffer(p->length);
	s.good = calloc(2, s.n);
	s.bad = s.good ? s.good + s.n : NULL;
	if (s.buf && s.good)
		check_sectors(&s);
	else
		check_fail(d->c, err_nomem(&err), &err);
	free(s.buf);
	free(s.good);
}
