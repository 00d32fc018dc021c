/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_DIR_LOG_H
#define BTRKIT_FORMAT_ITEMS_DIR_LOG_H

#include "lib/format/item.h"

/* In a log tree: all names of the directory with indexes from key.offset to end are in the log. */
struct disk_dir_log {
	le64 end;
};
DISK_ASSERT_SIZE(disk_dir_log, 8);

extern const struct item_type item_type_dir_log_item;
extern const struct item_type item_type_dir_log_index;

#endif
