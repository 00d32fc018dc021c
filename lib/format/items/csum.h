/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_CSUM_H
#define BTRKIT_FORMAT_ITEMS_CSUM_H

#include "lib/format/item.h"

/* The checksums of consecutive sectors of data: item size / csum size of them, from logical address key.offset on. */

extern const struct item_type item_type_csum;

#endif
