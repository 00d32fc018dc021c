/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_FORMAT_ITEMS_UUID_H
#define BTRKIT_FORMAT_ITEMS_UUID_H

#include "lib/format/item.h"

/*
 * In the UUID tree: the key's objectid and offset are the halves of a UUID, the item is an array of subvolume numbers
 * (le64).
 */

extern const struct item_type item_type_uuid_subvol;
extern const struct item_type item_type_uuid_received_subvol;

#endif
