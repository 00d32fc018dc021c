// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/item.h"

#include "lib/base/err.h"
#include "lib/format/items/chunk.h"
#include "lib/format/items/dir.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/file_extent.h"
#include "lib/format/items/inode.h"
#include "lib/format/items/root.h"

/* In order of type. */
static const struct item_type *const rows[] = {
	&item_type_inode,
	&item_type_inode_ref,
	&item_type_inode_extref,
	&item_type_xattr,
	&item_type_dir_item,
	&item_type_dir_index,
	&item_type_extent_data,
	&item_type_root,
	&item_type_root_backref,
	&item_type_root_ref,
	&item_type_extent,
	&item_type_metadata,
	&item_type_extent_owner_ref,
	&item_type_tree_block_ref,
	&item_type_extent_data_ref,
	&item_type_shared_block_ref,
	&item_type_shared_data_ref,
	&item_type_chunk,
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct item_type *item_type_find(const struct btrkit_key *key)
{
	size_t low = 0, high = ROWS;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (rows[mid]->type == key->type)
			return rows[mid];
		if (rows[mid]->type < key->type)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const struct item_type *const *item_types(size_t *count)
{
	*count = ROWS;
	return rows;
}

int item_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	const struct item_type *type = item_type_find(&item->key);

	if (!type)
		return 0;
	if (item->size < type->min_size)
		return err_corrupt(err, "item_size", "%s of %u bytes where %u are the least", type->name, item->size,
				   type->min_size);
	return type->validate(ctx, item, err);
}
