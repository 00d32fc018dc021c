// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks the stripe tree, which maps data of most profiles. Linux looks up a copy by its device, which must be one of
 * the chunk. The copy may be anywhere within the chunk's stripe on that device.
 */
#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/ranges.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/stripes.h"
#include "lib/check/trees/table.h"
#include "lib/check/volume/groups.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/raid_stripe.h"
#include "lib/format/raid.h"
#include "lib/volume/volume.h"

struct stripes {
	struct check *c;
	size_t group_hint, extent_hint;
	uint64_t end; /* of the previous item */
};

static void report_stripe(struct stripes *s, enum check_code code, const struct item *item, const char *field,
			  const char *message)
{
	check_report_at(s->c, code, &(struct check_location){ OID_RAID_STRIPE_TREE, 0, &item->key, field }, "%s",
			message);
}

/* Whether the stripe tree maps a chunk: only data, either mirrored or striped without parity. */
static bool is_mapped(uint64_t flags)
{
	return (flags & BG_TYPE_MASK) == BG_DATA && flags & BG_PROFILE_MASK && !(flags & (BG_RAID5 | BG_RAID6));
}

static bool is_of(const struct volume_chunk *chunk, const struct disk_raid_stride *stride, uint64_t length)
{
	const uint64_t devid = le64_get(stride->devid), physical = le64_get(stride->physical);

	for (unsigned i = 0; i < chunk->num_stripes; i++) {
		const struct volume_stripe *at = &chunk->stripes[i];

		if (at->devid == devid && physical >= at->physical && length <= chunk->stripe_length &&
		    physical - at->physical <= chunk->stripe_length - length)
			return true;
	}
	return false;
}

static void verify_copies(struct stripes *s, const struct item *item, const struct check_group *group)
{
	const struct volume *v = s->c->fs->volume;
	const size_t number = volume_find_chunk(v, group->start);
	const struct disk_raid_stride *strides = (const struct disk_raid_stride *)item->data;
	const size_t n = item->size / sizeof(*strides);

	if (number == volume_num_chunks(v))
		return;
	if (n < raid_profile_find(group->flags)->copies)
		report_stripe(s, CHECK_STRIPE_PLACE, item, "item_size",
			      "stripe extent has fewer copies than the profile of its block group");
	for (size_t i = 0; i < n; i++)
		if (!is_of(volume_chunk(v, number), &strides[i], item->key.offset))
			report_stripe(s, CHECK_STRIPE_PLACE, item, "physical",
				      "copy in the stripe extent is outside the chunk");
}

static void check_location(struct stripes *s, const struct item *item)
{
	const uint64_t start = item->key.objectid, length = item->key.offset;
	const struct check_group *g = check_group_of(s->c, start, &s->group_hint);

	if (!g || length > g->start + g->length - start || !(g->flags & BG_DATA))
		report_stripe(s, CHECK_STRIPE_PLACE, item, "key", "stripe extent is not inside a data block group");
	else if (is_mapped(g->flags) && !s->c->chunks_lost)
		verify_copies(s, item, g);
}

/* Unused entries are replaced when the space is reused. Data in a log has no extent yet. */
static void check_use(struct stripes *s, const struct item *item)
{
	const uint64_t end = item->key.objectid + item->key.offset;
	const uint32_t sector = s->c->items.sectorsize;

	for (uint64_t pos = item->key.objectid; pos < end && !s->c->extents_lost && !s->c->fs->super.log_root;) {
		const struct check_extent *e = check_find_extent(&s->c->tables, pos, sector, &s->extent_hint);
		const uint64_t behind = e ? check_extent_start(e) + (uint64_t)e->sectors * sector : 0;

		if (behind <= pos) {
			report_stripe(s, CHECK_STRIPE_EXTENT, item, "key",
				      "stripe extent maps space without a data extent");
			return;
		}
		pos = behind;
	}
}

static void take(void *ctx, const struct item *item)
{
	struct stripes *s = ctx;
	const uint64_t start = item->key.objectid, length = item->key.offset;

	if (item->key.type != KEY_RAID_STRIPE)
		return;
	if (item_validate(&s->c->items, item, NULL)) {
		s->c->stripes_lost = true;
		return;
	}
	if (!length || length % s->c->items.sectorsize || start + length < start) {
		report_stripe(s, CHECK_STRIPE_PLACE, item, "key.offset", "invalid length of the stripe extent");
		return;
	}
	check_location(s, item);
	check_use(s, item);
	if (start < s->end)
		report_stripe(s, CHECK_STRIPE_OVERLAP, item, "key.objectid", "stripe extent overlaps the previous one");
	if (start + length <= s->end)
		return;
	check_ranges_add(s->c, &s->c->stripes, start < s->end ? s->end : start, start + length);
	s->end = start + length;
}

int check_stripes(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_RAID_STRIPE_TREE);
	struct stripes s = { .c = c };

	if (!(c->items.incompat & INCOMPAT_RAID_STRIPE_TREE))
		return 0;
	/* roots.c reports a missing tree. */
	if (!root) {
		c->stripes_lost = true;
		return 0;
	}
	return check_each_item(c, &root->root, &c->stripes_lost, take, &s);
}

bool check_stripes_have(const struct check *c, uint64_t start, uint64_t length)
{
	const struct range *ranges = c->stripes.at;
	const struct check_group *g;
	size_t hint = 0, i;

	if (c->stripes_lost || !(c->items.incompat & INCOMPAT_RAID_STRIPE_TREE))
		return true;
	g = check_group_of(c, start, &hint);
	if (!g || !is_mapped(g->flags))
		return true;
	i = check_ranges_behind(&c->stripes, start);
	return i < c->stripes.n && ranges[i].start <= start && range_end(&ranges[i]) - start >= length;
}
