/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_QGROUP_H
#define BTRKIT_FORMAT_ITEMS_QGROUP_H

#include "lib/format/item.h"

#define QGROUP_STATUS_ON (1ull << 0)
#define QGROUP_STATUS_RESCAN (1ull << 1)
#define QGROUP_STATUS_INCONSISTENT (1ull << 2)
#define QGROUP_STATUS_SIMPLE_MODE (1ull << 3)
#define QGROUP_STATUS_FLAGS 0xfull
#define QGROUP_STATUS_VERSION 1

struct disk_qgroup_status {
	le64 version;
	le64 generation;
	le64 flags;
	le64 rescan;
	le64 enable_gen;	/* since Linux 6.7 */
};
DISK_ASSERT_SIZE(disk_qgroup_status, 40);
DISK_ASSERT_AT(disk_qgroup_status, generation, 8);
DISK_ASSERT_AT(disk_qgroup_status, flags, 16);
DISK_ASSERT_AT(disk_qgroup_status, rescan, 24);
DISK_ASSERT_AT(disk_qgroup_status, enable_gen, 32);
#define QGROUP_STATUS_SHORT 32	/* size of the item as written by older kernels */

struct qgroup_status {
	uint64_t version, generation;
	uint64_t flags;
	uint64_t rescan;
	uint64_t enable_gen;	/* 0 if the item is short */
};

struct disk_qgroup_info {
	le64 generation;
	le64 rfer, rfer_cmpr;
	le64 excl, excl_cmpr;
};
DISK_ASSERT_SIZE(disk_qgroup_info, 40);
DISK_ASSERT_AT(disk_qgroup_info, rfer, 8);
DISK_ASSERT_AT(disk_qgroup_info, rfer_cmpr, 16);
DISK_ASSERT_AT(disk_qgroup_info, excl, 24);
DISK_ASSERT_AT(disk_qgroup_info, excl_cmpr, 32);

struct qgroup_info {
	uint64_t id;
	uint64_t generation;
	uint64_t rfer, rfer_cmpr;	/* referenced */
	uint64_t excl, excl_cmpr;	/* exclusive */
};

struct disk_qgroup_limit {
	le64 flags;
	le64 max_rfer, max_excl;
	le64 rsv_rfer, rsv_excl;
};
DISK_ASSERT_SIZE(disk_qgroup_limit, 40);
DISK_ASSERT_AT(disk_qgroup_limit, max_rfer, 8);
DISK_ASSERT_AT(disk_qgroup_limit, max_excl, 16);
DISK_ASSERT_AT(disk_qgroup_limit, rsv_rfer, 24);
DISK_ASSERT_AT(disk_qgroup_limit, rsv_excl, 32);

struct qgroup_limit {
	uint64_t id;
	uint64_t flags;
	uint64_t max_rfer, max_excl;
	uint64_t rsv_rfer, rsv_excl;
};

int qgroup_status_decode(const struct item *item, struct qgroup_status *ret,
			 struct btrkit_error *err) BTRKIT_MUST_CHECK;
int qgroup_info_decode(const struct item *item, struct qgroup_info *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;
int qgroup_limit_decode(const struct item *item, struct qgroup_limit *ret, struct btrkit_error *err) BTRKIT_MUST_CHECK;

extern const struct item_type item_type_qgroup_status;
extern const struct item_type item_type_qgroup_info;
extern const struct item_type item_type_qgroup_limit;

#endif
