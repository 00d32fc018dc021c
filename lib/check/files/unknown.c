// SPDX-License-Identifier: LGPL-2.1-or-later
/* Items of unknown types, in any tree. */
#include "lib/check/files/unknown.h"

#include "lib/check/findings.h"
#include "lib/check/state.h"
#include "lib/format/ids.h"

/*
 * Whether Linux finds the item where it searches for the largest number of an inode, or of a tree in the root tree:
 * it looks at the item before that key, and takes one that has it for damage.
 */
static bool ends_numbers(uint64_t tree, const struct btrkit_key *key)
{
	return (oid_is_file_tree(tree) || tree == OID_ROOT_TREE || tree == OID_DATA_RELOC_TREE) &&
	       key->objectid == OID_LAST_FREE && key->type == UINT8_MAX && key->offset == UINT64_MAX;
}

void check_unknown_item(struct check *c, uint64_t tree, const struct node *leaf, const struct item *item)
{
	if (ends_numbers(tree, &item->key)) {
		check_report_at(c, CHECK_ITEM_INVALID,
				&(struct check_location){ tree, leaf->bytenr, &item->key, "key" },
				"item is at the key behind all numbers of inodes and trees");
		return;
	}
	check_report_at(c, CHECK_ITEM_UNKNOWN, &(struct check_location){ tree, leaf->bytenr, &item->key, "key.type" },
			"unknown item type %u", item->key.type);
}
