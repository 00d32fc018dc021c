/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_DEV_STATS_H
#define BTRKIT_FORMAT_ITEMS_DEV_STATS_H

#include "lib/format/item.h"

/* PERSISTENT_ITEM: with objectid OID_DEV_STATS, the error counters of the device key.offset. */

enum dev_stat { DEV_STAT_WRITE, DEV_STAT_READ, DEV_STAT_FLUSH, DEV_STAT_CORRUPTION, DEV_STAT_GENERATION, DEV_STATS };

struct disk_dev_stats {
	le64 values[DEV_STATS];
};
DISK_ASSERT_SIZE(disk_dev_stats, 40);

extern const struct item_type item_type_persistent;

#endif
