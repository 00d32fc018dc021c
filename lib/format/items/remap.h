/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_REMAP_H
#define BTRKIT_FORMAT_ITEMS_REMAP_H

#include "lib/format/item.h"

/* Of the remap tree: where the range (key.objectid, key.offset bytes) went, or in a backref came from. */
struct disk_remap {
	le64 address;
};
DISK_ASSERT_SIZE(disk_remap, 8);

extern const struct item_type item_type_remap;
extern const struct item_type item_type_remap_backref;

#endif
