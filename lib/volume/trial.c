// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/trial.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/text.h"

/* Maximum number of strips of a full stripe that are listed. */
#define NAMED_MAX 8u

void trial_begin(struct trial *t, const struct volume *v, const struct volume_chunk *chunk, uint64_t logical,
		 size_t len, bool fresh)
{
	/* The arrays are only filled in on a failure, which is rare. */
	t->v = v;
	t->chunk = chunk;
	t->logical = logical;
	t->len = len;
	t->fresh = fresh;
	t->met = false;
	t->ret = 0;
	t->num_copies = 0;
	t->ways = 0;
}

static void enter(struct trial *t, const struct btrkit_tried_copy *copy, const char *why)
{
	struct btrkit_tried_copy *to = &t->copies[t->num_copies];

	if (t->num_copies == TRIED_MAX)
		return;
	*to = *copy;
	snprintf(t->why[t->num_copies], sizeof(t->why[0]), "%s", why);
	to->why = t->why[t->num_copies++];
}

static bool is_copy(const struct trial *t, unsigned mirror)
{
	const struct raid_shape shape = shape_of(t->chunk);

	return mirror < raid_copies(&shape);
}

static struct volume_stripe device_range_of(const struct trial *t, unsigned stripe, uint64_t offset)
{
	struct volume_stripe s = t->chunk->stripes[stripe];

	s.physical += offset;
	return s;
}

/* Whether a copy was known to be missing or stale. */
static bool is_absent(const struct trial *t, unsigned mirror)
{
	const struct raid_shape shape = shape_of(t->chunk);
	const struct raid_place place = raid_map(&shape, t->logical - t->chunk->logical, mirror);
	const struct device *d = &t->v->devices[t->chunk->stripes[place.stripe].device];

	return !d->is.io || (t->fresh && d->stale);
}

void trial_failed(struct trial *t, unsigned mirror, int ret, const struct btrkit_error *e)
{
	const bool copy = is_copy(t, mirror);

	if (!t->ret) {
		t->ret = ret;
		t->err = *e;
	}
	/* Too few strips for parity is also the result of a missing device. */
	if (copy ? !is_absent(t, mirror) : ret != -ENXIO)
		t->met = true;
	if (copy || !t->ways++)
		enter(t,
		      &(struct btrkit_tried_copy){ copy ? mirror + 1 : 0, copy ? e->devid : 0, copy ? e->physical : 0,
						   ret, NULL },
		      e->message);
}

void trial_left_out(struct trial *t, uint64_t devid, uint64_t physical)
{
	enter(t, &(struct btrkit_tried_copy){ 0, devid, physical, -EUCLEAN, NULL },
	      "does not match the other strips of its full stripe");
}

static void tell(const struct trial *t, bool served)
{
	const struct btrkit_bad_read bad = { t->logical, t->len, served, t->num_copies, t->copies };

	if (t->v->bad_read && t->met)
		t->v->bad_read(t->v->bad_read_ctx, &bad);
}

void trial_served(struct trial *t, unsigned mirror)
{
	const struct raid_shape shape = shape_of(t->chunk);
	struct btrkit_tried_copy copy = { 0 };

	if (is_copy(t, mirror)) {
		const struct raid_place place = raid_map(&shape, t->logical - t->chunk->logical, mirror);
		const struct volume_stripe s = device_range_of(t, place.stripe, place.offset);

		copy = (struct btrkit_tried_copy){ mirror + 1, s.devid, s.physical, 0, NULL };
	}
	enter(t, &copy, "");
	tell(t, true);
}

/* Lists the strips from which parity would rebuild the data. */
static void add_full_stripe(const struct trial *t, struct btrkit_error *err)
{
	const struct raid_shape shape = shape_of(t->chunk);
	const struct raid_place place = raid_map(&shape, t->logical - t->chunk->logical, 0);
	unsigned named = 0;

	for (unsigned i = 0; i < t->chunk->num_stripes; i++) {
		const struct volume_stripe s = device_range_of(t, i, place.offset);

		if (i == place.stripe)
			continue;
		if (named++ < NAMED_MAX)
			text_add(err->copies, sizeof(err->copies), "%sdevice %" PRIu64 " at %" PRIu64,
				 named > 1 ? ", " : "", s.devid, s.physical);
	}
	if (named > NAMED_MAX)
		text_add(err->copies, sizeof(err->copies), " and %u more", named - NAMED_MAX);
}

/* Describe a copy that was tried after the first. */
static void add_copy(const struct trial *t, const struct btrkit_tried_copy *c, struct btrkit_error *err)
{
	if (c->mirror) {
		text_add(err->copies, sizeof(err->copies), "copy %u on device %" PRIu64 " at %" PRIu64 ": %s",
			 c->mirror, c->devid, c->physical, c->why);
		return;
	}
	text_add(err->copies, sizeof(err->copies), "by parity from ");
	add_full_stripe(t, err);
	if (t->ways > 1)
		text_add(err->copies, sizeof(err->copies), ", in each of %u ways", t->ways);
	text_add(err->copies, sizeof(err->copies), ": %s", c->why);
}

int trial_lost(struct trial *t, struct btrkit_error *err)
{
	tell(t, false);
	err_at_logical(&t->err, t->logical);
	if (!err)
		return t->ret;
	*err = t->err;
	for (unsigned i = 1; i < t->num_copies; i++) {
		if (i > 1)
			text_add(err->copies, sizeof(err->copies), "; ");
		add_copy(t, &t->copies[i], err);
	}
	return t->ret;
}
