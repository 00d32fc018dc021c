// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/volume/raid_map.h"

#define BG_STRIPED (BG_RAID0 | BG_RAID10 | BG_RAID5 | BG_RAID6)

bool raid_striped(uint64_t type)
{
	return raid_profile_find(type)->flag & BG_STRIPED;
}

bool raid_shape_valid(const struct raid_shape *s)
{
	const struct raid_profile *p = raid_profile_find(s->type);

	if (s->num_stripes < p->min_stripes || (p->max_stripes && s->num_stripes > p->max_stripes))
		return false;
	return !(s->num_stripes % (p->flag & BG_RAID10 ? p->copies : 1));
}

unsigned raid_copies(const struct raid_shape *s)
{
	return raid_profile_find(s->type)->copies;
}

unsigned raid_data_stripes(const struct raid_shape *s)
{
	const struct raid_profile *p = raid_profile_find(s->type);

	return (s->num_stripes - p->parity) / p->copies;
}

unsigned raid_strip_stripe(const struct raid_shape *s, uint64_t full_stripe, unsigned strip)
{
	return (unsigned)((strip + full_stripe) % s->num_stripes);
}

struct raid_place raid_map(const struct raid_shape *s, uint64_t offset, unsigned copy)
{
	const struct raid_profile *p = raid_profile_find(s->type);
	const unsigned data = raid_data_stripes(s);
	const uint64_t strip = offset / CHUNK_STRIPE_LEN, within = offset % CHUNK_STRIPE_LEN;
	const uint64_t full_stripe = strip / data;
	const unsigned column = (unsigned)(strip % data);

	if (!(p->flag & BG_STRIPED))
		return (struct raid_place){ copy, offset, UINT64_MAX - offset };
	return (struct raid_place){ p->parity ? raid_strip_stripe(s, full_stripe, column) : column * p->copies + copy,
				    full_stripe * CHUNK_STRIPE_LEN + within, CHUNK_STRIPE_LEN - within };
}

enum raid_role raid_unmap(const struct raid_shape *s, unsigned stripe, uint64_t offset, uint64_t *chunk_offset)
{
	const struct raid_profile *p = raid_profile_find(s->type);
	const unsigned data = raid_data_stripes(s);
	const uint64_t full_stripe = offset / CHUNK_STRIPE_LEN, within = offset % CHUNK_STRIPE_LEN;
	unsigned column = stripe / p->copies;

	if (!(p->flag & BG_STRIPED)) {
		*chunk_offset = offset;
		return RAID_DATA;
	}
	if (p->parity)
		column = (unsigned)((stripe + s->num_stripes - full_stripe % s->num_stripes) % s->num_stripes);
	if (column >= data) {
		*chunk_offset = full_stripe * data * CHUNK_STRIPE_LEN;
		return column == data ? RAID_P : RAID_Q;
	}
	*chunk_offset = (full_stripe * data + column) * CHUNK_STRIPE_LEN + within;
	return RAID_DATA;
}
