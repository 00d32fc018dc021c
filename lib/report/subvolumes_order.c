// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/report/subvolumes.h"

#include <string.h>

#include "lib/base/err.h"

int subvolumes_check(const struct btrkit_subvolumes_options *o, struct btrkit_error *err)
{
	const unsigned known = 2 * BTRKIT_SUBVOLUMES_RELATIONS - 1;

	if (o->flags & ~known)
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", o->flags & ~known);
	for (size_t i = 0; i < o->num_order; i++)
		if ((unsigned)o->order[i].key > BTRKIT_SUBVOLUMES_BY_PATH)
			return err_set(err, BTRKIT_INVALID, "unknown sort key");
	return 0;
}

bool subvolumes_wanted(const struct btrkit_subvolumes_options *o, const struct btrkit_key *key,
		       const struct root_item *item)
{
	const uint64_t created = item->otransid;

	if (!item->refs ? !(o->flags & (BTRKIT_SUBVOLUMES_DELETED | BTRKIT_SUBVOLUMES_ONLY_DELETED)) :
			  o->flags & BTRKIT_SUBVOLUMES_ONLY_DELETED)
		return false;
	if (o->flags & BTRKIT_SUBVOLUMES_READONLY && !(item->flags & ROOT_SUBVOL_RDONLY))
		return false;
	/* The key offset of a snapshot is the generation in which it was created. */
	if (o->flags & BTRKIT_SUBVOLUMES_SNAPSHOTS && !key->offset)
		return false;
	return item->generation >= o->min_generation && item->generation <= o->max_generation &&
	       created >= o->min_creation && created <= o->max_creation;
}

bool subvolumes_by_path(const struct btrkit_subvolumes_options *o)
{
	for (size_t i = 0; i < o->num_order; i++)
		if (o->order[i].key == BTRKIT_SUBVOLUMES_BY_PATH)
			return true;
	return false;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_paths(const struct subvolume_listed *a, const struct subvolume_listed *b)
{
	const size_t a_len = a->path ? a->path_len : 0, b_len = b->path ? b->path_len : 0;
	const size_t len = a_len < b_len ? a_len : b_len;
	const int order = len ? memcmp(a->path, b->path, len) : 0;

	return order ? order : compare_u64(a_len, b_len);
}

static int compare_by(enum btrkit_subvolumes_key key, const struct subvolume_listed *a,
		      const struct subvolume_listed *b)
{
	switch (key) {
	case BTRKIT_SUBVOLUMES_BY_GENERATION:
		return compare_u64(a->item.generation, b->item.generation);
	case BTRKIT_SUBVOLUMES_BY_CREATION:
		return compare_u64(a->item.otransid, b->item.otransid);
	case BTRKIT_SUBVOLUMES_BY_PATH:
		return compare_paths(a, b);
	default:
		return compare_u64(a->id, b->id);
	}
}

int subvolumes_compare(const void *a, const void *b, void *ctx)
{
	const struct btrkit_subvolumes_options *o = ctx;
	int order = 0;

	for (size_t i = 0; !order && i < o->num_order; i++)
		order = compare_by(o->order[i].key, a, b) * (o->order[i].descending ? -1 : 1);
	return order ? order : compare_by(BTRKIT_SUBVOLUMES_BY_ID, a, b);
}
