// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the item of an interrupted balance, which Linux resumes or drops at mount. */
#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/balance.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/devices/balance.h"
#include "lib/format/raid.h"
#include "lib/volume/volume.h"

#include <string.h>

#define BALANCE_DATA (1ull << 0)
#define BALANCE_METADATA (1ull << 2)
#define ARGS_CONVERT (1ull << 8)
#define TARGET_SINGLE (1ull << 48) /* the single profile, which has no bit in chunk types */

static void report_balance(struct check *c, const struct item *item, const char *field, const char *message)
{
	check_report_at(c, CHECK_BALANCE, &(struct check_location){ OID_ROOT_TREE, 0, &item->key, field }, "%s",
			message);
}

/* Whether chunks of a profile (exactly one bit) are possible with that many devices. */
static bool can_be(uint64_t target, size_t devices)
{
	const struct raid_profile *profile = raid_profile_find(target);

	if (target == TARGET_SINGLE)
		return true;
	if (!target || target & (target - 1) || target & ~BG_PROFILE_MASK)
		return false;
	return target == BG_DUP || devices >= profile->min_stripes;
}

static void check_target(struct check *c, const struct item *item, const struct disk_balance_args *args,
			 const char *field)
{
	if (le64_get(args->flags) & ARGS_CONVERT && !can_be(le64_get(args->target), volume_num_devices(c->fs->volume)))
		report_balance(c, item, field, "interrupted balance converts to an impossible profile");
}

static void check_item(struct check *c, const struct item *item)
{
	const struct disk_balance *b = (const struct disk_balance *)item->data;
	const uint64_t mixed = BALANCE_DATA | BALANCE_METADATA;

	if (item_validate(&c->items, item, NULL))
		return;
	check_target(c, item, &b->data, "data.target");
	check_target(c, item, &b->meta, "meta.target");
	check_target(c, item, &b->sys, "sys.target");
	if (c->items.incompat & INCOMPAT_MIXED_GROUPS && le64_get(b->flags) & mixed &&
	    ((le64_get(b->flags) & mixed) != mixed || memcmp(&b->data, &b->meta, sizeof(b->data))))
		report_balance(c, item, "flags",
			       "interrupted balance treats data and metadata differently, but block groups are mixed");
}

int check_balance(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_ROOT_TREE);
	struct cursor cur;

	if (!root)
		return 0;
	cursor_init(&cur, c->fs, &root->root);
	if (!check_find(c, &cur, &KEY(OID_BALANCE, KEY_TEMPORARY_ITEM, 0)))
		check_item(c, &cur.item);
	cursor_release(&cur);
	return c->failed;
}
