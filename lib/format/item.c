// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/item.h"

#include "lib/base/err.h"
#include "lib/format/items/chunk.h"
#include "lib/format/items/dir.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/file_extent.h"
#include "lib/format/items/inode.h"
#include "lib/format/items/root.h"

/* The registry, in order of type. */
#define ITEM_ROWS(row) \
	row(KEY_INODE_ITEM, item_type_inode) \
	row(KEY_INODE_REF, item_type_inode_ref) \
	row(KEY_INODE_EXTREF, item_type_inode_extref) \
	row(KEY_XATTR_ITEM, item_type_xattr) \
	row(KEY_DIR_ITEM, item_type_dir_item) \
	row(KEY_DIR_INDEX, item_type_dir_index) \
	row(KEY_EXTENT_DATA, item_type_extent_data) \
	row(KEY_ROOT_ITEM, item_type_root) \
	row(KEY_ROOT_BACKREF, item_type_root_backref) \
	row(KEY_ROOT_REF, item_type_root_ref) \
	row(KEY_EXTENT_ITEM, item_type_extent) \
	row(KEY_METADATA_ITEM, item_type_metadata) \
	row(KEY_EXTENT_OWNER_REF, item_type_extent_owner_ref) \
	row(KEY_TREE_BLOCK_REF, item_type_tree_block_ref) \
	row(KEY_EXTENT_DATA_REF, item_type_extent_data_ref) \
	row(KEY_SHARED_BLOCK_REF, item_type_shared_block_ref) \
	row(KEY_SHARED_DATA_REF, item_type_shared_data_ref) \
	row(KEY_CHUNK_ITEM, item_type_chunk)

#define IN_ORDER(type, row) &row,
#define BY_TYPE(type, row) [type] = &row,

static const struct item_type *const rows[] = { ITEM_ROWS(IN_ORDER) };
static const struct item_type *const by_type[256] = { ITEM_ROWS(BY_TYPE) };

const struct item_type *item_type_find(const struct btrkit_key *key)
{
	return by_type[key->type];
}

const struct item_type *const *item_types(size_t *count)
{
	*count = sizeof(rows) / sizeof(rows[0]);
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
