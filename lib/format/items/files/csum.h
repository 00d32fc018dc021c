/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_CSUM_H
#define BTRKIT_FORMAT_ITEMS_CSUM_H

#include "lib/format/item.h"

/* Checksums of consecutive data sectors: item size / csum size of them, beginning at the logical address key.offset. */

extern const struct item_type item_type_csum;

#endif
