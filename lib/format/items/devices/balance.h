/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_BALANCE_H
#define BTRKIT_FORMAT_ITEMS_BALANCE_H

#include "lib/format/item.h"

/* TEMPORARY_ITEM: with objectid OID_BALANCE, the arguments of an unfinished balance. */

struct disk_balance_args {
	le64 profiles;
	le32 usage_min, usage_max;
	le64 devid;
	le64 pstart, pend;
	le64 vstart, vend;
	le64 target;
	le64 flags;
	le32 limit_min, limit_max;
	le32 stripes_min, stripes_max;
	le64 unused[6];
};
DISK_ASSERT_SIZE(disk_balance_args, 136);
DISK_ASSERT_AT(disk_balance_args, usage_min, 8);
DISK_ASSERT_AT(disk_balance_args, usage_max, 12);
DISK_ASSERT_AT(disk_balance_args, devid, 16);
DISK_ASSERT_AT(disk_balance_args, pstart, 24);
DISK_ASSERT_AT(disk_balance_args, pend, 32);
DISK_ASSERT_AT(disk_balance_args, vstart, 40);
DISK_ASSERT_AT(disk_balance_args, vend, 48);
DISK_ASSERT_AT(disk_balance_args, target, 56);
DISK_ASSERT_AT(disk_balance_args, flags, 64);
DISK_ASSERT_AT(disk_balance_args, limit_min, 72);
DISK_ASSERT_AT(disk_balance_args, limit_max, 76);
DISK_ASSERT_AT(disk_balance_args, stripes_min, 80);
DISK_ASSERT_AT(disk_balance_args, stripes_max, 84);
DISK_ASSERT_AT(disk_balance_args, unused, 88);

struct disk_balance {
	le64 flags;
	struct disk_balance_args data, meta, sys;
	le64 unused[4];
};
DISK_ASSERT_SIZE(disk_balance, 448);
DISK_ASSERT_AT(disk_balance, data, 8);
DISK_ASSERT_AT(disk_balance, meta, 144);
DISK_ASSERT_AT(disk_balance, sys, 280);
DISK_ASSERT_AT(disk_balance, unused, 416);

extern const struct item_type item_type_temporary;

#endif
