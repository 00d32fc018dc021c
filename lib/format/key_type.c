// SPDX-License-Identifier: LGPL-2.1-or-later
/* Apart from key_names.c, because it needs all item types: what prints keys outside the library has its own. */
#include "lib/format/item.h"
#include "lib/format/key_names.h"

const char *key_type_name(uint64_t objectid, uint8_t type)
{
	const struct item_type *row = item_type_find(&KEY(objectid, type, 0));

	return row ? row->name : NULL;
}
