// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items of unknown types, in any tree. */
#include "lib/check/files/unknown.h"

#include "lib/check/findings.h"
#include "lib/check/state.h"

void check_unknown_item(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item)
{
	check_report_at(c, CHECK_ITEM_UNKNOWN, &(struct check_location){ tree, leaf->bytenr, &item->key, "key.type" },
			"unknown item type %u", item->key.type);
}
