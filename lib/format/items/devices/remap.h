/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_REMAP_H
#define BTRKIT_FORMAT_ITEMS_REMAP_H

#include "lib/format/item.h"

/* In the remap tree: the new address of the range (key.objectid, key.offset bytes), or in a backref its old address. */
struct disk_remap {
	le64 address;
};
DISK_ASSERT_SIZE(disk_remap, 8);

extern const struct item_type item_type_remap;
extern const struct item_type item_type_remap_backref;

#endif
