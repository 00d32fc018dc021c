/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_VERITY_H
#define BTRKIT_FORMAT_ITEMS_VERITY_H

#include "lib/format/item.h"

/* Beginning of the VERITY_DESC_ITEM at offset 0. The descriptor of fs-verity itself starts at offset 1. */
struct disk_verity_desc {
	le64 size;
	le64 reserved[2];
	uint8_t encryption;
};
DISK_ASSERT_SIZE(disk_verity_desc, 25);
DISK_ASSERT_AT(disk_verity_desc, reserved, 8);
DISK_ASSERT_AT(disk_verity_desc, encryption, 24);

extern const struct item_type item_type_verity_desc;

#endif
