// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks the item of a device replacement, which Linux resumes at mount and which needs its devices. */
#include <inttypes.h>

#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/replace.h"
#include "lib/check/trees/roots.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/volume/volume.h"

/* States of a replacement. */
enum {
	REPLACE_NEVER,
	REPLACE_STARTED,
	REPLACE_FINISHED,
	REPLACE_CANCELED,
	REPLACE_SUSPENDED
};

/* The target device of a replacement has devid 0 and no device item. */
#define TARGET_DEVID 0

static bool has_device(const struct check *c, uint64_t devid, bool at_hand)
{
	const struct volume *v = c->fs->volume;

	for (size_t i = 0; i < volume_num_devices(v); i++)
		if (volume_device(v, i).devid == devid && (!at_hand || volume_device(v, i).io))
			return true;
	return false;
}

static void check_item(struct check *c, const struct item *item)
{
	const struct disk_dev_replace *d = (const struct disk_dev_replace *)item->data;
	const struct check_location at = { OID_DEV_TREE, 0, &item->key, "state" };
	const uint64_t state = le64_get(d->state), devid = le64_get(d->src_devid);
	const bool active = state == REPLACE_STARTED || state == REPLACE_SUSPENDED;
	const bool target = has_device(c, TARGET_DEVID, true);

	if (state > REPLACE_SUSPENDED)
		check_report_at(c, CHECK_ITEM_UNCHECKED, &at, "unknown state of the device replacement: %" PRIu64,
				state);
	else if (active && !has_device(c, devid, false))
		check_report_at(c, CHECK_DEV_REPLACE, &at, "device %" PRIu64 " is being replaced, but does not exist",
				devid);
	else if (active && !target)
		check_report_at(c, CHECK_DEV_REPLACE, &at,
				"device %" PRIu64 " is being replaced, but the target device is missing", devid);
	else if (!active && target)
		check_report_at(c, CHECK_DEV_REPLACE, &at,
				"target device of a replacement exists, but no replacement is in progress");
}

/* Smaller items are reported as invalid. */
static void report_size(struct check *c, const struct item *item)
{
	const struct check_location at = { OID_DEV_TREE, 0, &item->key, "size" };

	check_report_at(c, CHECK_ITEM_UNCHECKED, &at,
			"item of the device replacement has %" PRIu32 " bytes, so that Linux ignores it", item->size);
}

int check_replace(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_DEV_TREE);
	/* A missing item, or one of another size, means that there never was a replacement. */
	static const struct disk_dev_replace never;
	struct item item = { KEY(0, KEY_DEV_REPLACE, 0), (const uint8_t *)&never, sizeof(never) };
	struct cursor cur;
	int ret;

	if (!root)
		return 0;
	cursor_init(&cur, c->fs, &root->root);
	ret = check_find(c, &cur, &item.key);
	if (!ret && cur.item.size == sizeof(never))
		item = cur.item;
	else if (!ret && !item_validate(&c->items, &cur.item, NULL))
		report_size(c, &cur.item);
	if (ret >= 0)
		check_item(c, &item);
	cursor_release(&cur);
	return c->failed;
}
