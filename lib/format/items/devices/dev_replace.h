/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_DEV_REPLACE_H
#define BTRKIT_FORMAT_ITEMS_DEV_REPLACE_H

#include "lib/format/item.h"

/* State of a device replacement. */
struct disk_dev_replace {
	le64 src_devid;
	le64 cursor_left;
	le64 cursor_right;
	le64 mode;	/* how to read from the source device */
	le64 state;
	le64 time_started;
	le64 time_stopped;
	le64 num_write_errors;
	le64 num_uncorrectable_read_errors;
};
DISK_ASSERT_SIZE(disk_dev_replace, 72);
DISK_ASSERT_AT(disk_dev_replace, cursor_left, 8);
DISK_ASSERT_AT(disk_dev_replace, cursor_right, 16);
DISK_ASSERT_AT(disk_dev_replace, mode, 24);
DISK_ASSERT_AT(disk_dev_replace, state, 32);
DISK_ASSERT_AT(disk_dev_replace, time_started, 40);
DISK_ASSERT_AT(disk_dev_replace, time_stopped, 48);
DISK_ASSERT_AT(disk_dev_replace, num_write_errors, 56);
DISK_ASSERT_AT(disk_dev_replace, num_uncorrectable_read_errors, 64);

extern const struct item_type item_type_dev_replace;

#endif
