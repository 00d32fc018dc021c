// SPDX-License-Identifier: LGPL-2.1-or-later
/* The replacement of a device that Linux goes on with when it mounts, and for which it wants the device. */
#include <inttypes.h>

#include "lib/check/state.h"
#include "lib/format/items/dev_replace.h"
#include "lib/volume/volume.h"

/* How far a replacement has come. */
enum {
	REPLACE_NEVER,
	REPLACE_STARTED,
	REPLACE_FINISHED,
	REPLACE_CANCELED,
	REPLACE_SUSPENDED
};

static bool has_device(const struct check *c, uint64_t devid)
{
	for (size_t i = 0; i < volume_num_devices(c->fs->volume); i++)
		if (volume_device(c->fs->volume, i).devid == devid)
			return true;
	return false;
}

static void judge(struct check *c, const struct item *item)
{
	const struct disk_dev_replace *d = (const struct disk_dev_replace *)item->data;
	const struct check_place at = { OID_DEV_TREE, 0, &item->key, "state" };
	const uint64_t state = le64_get(d->state);

	if (item_validate(&c->items, item, NULL))
		return;
	if (state > REPLACE_SUSPENDED)
		check_say(c, CHECK_DEV_REPLACE, &at, "device replacement in the unknown state %" PRIu64, state);
	else if ((state == REPLACE_STARTED || state == REPLACE_SUSPENDED) && !has_device(c, le64_get(d->src_devid)))
		check_say(c, CHECK_DEV_REPLACE, &at,
			  "device %" PRIu64 " is being replaced, and the filesystem has no such device",
			  le64_get(d->src_devid));
}

int check_replace(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_DEV_TREE);
	struct cursor cur;

	if (!root)
		return 0;
	cursor_init(&cur, c->fs, &root->root);
	if (!cursor_find(&cur, &KEY(0, KEY_DEV_REPLACE, 0), NULL))
		judge(c, &cur.item);
	cursor_release(&cur);
	return c->failed;
}
