/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_RAID_STRIPE_H
#define BTRKIT_FORMAT_ITEMS_RAID_STRIPE_H

#include "lib/format/item.h"

/* Location of the logical range (key.objectid, key.offset bytes) on a device. The item is an array of these. */
struct disk_raid_stride {
	le64 devid;
	le64 physical;
};
DISK_ASSERT_SIZE(disk_raid_stride, 16);
DISK_ASSERT_AT(disk_raid_stride, physical, 8);

extern const struct item_type item_type_raid_stripe;

#endif
