// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of key types, for lib/format/key_names.c: here without the item types, which are in the library. */
#include "lib/format/key_names.h"

#include <btrkit/dump.h>

const char *key_type_name(uint64_t objectid, uint8_t type)
{
	return btrkit_item_type_name(objectid, type);
}
