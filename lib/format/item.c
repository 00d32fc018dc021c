// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/item.h"

#include "lib/base/err.h"
#include "lib/format/items/devices/balance.h"
#include "lib/format/items/block_group.h"
#include "lib/format/items/devices/chunk.h"
#include "lib/format/items/files/csum.h"
#include "lib/format/items/devices/dev.h"
#include "lib/format/items/devices/dev_replace.h"
#include "lib/format/items/devices/dev_stats.h"
#include "lib/format/items/files/dir.h"
#include "lib/format/items/files/dir_log.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/files/file_extent.h"
#include "lib/format/items/free_space.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/plain.h"
#include "lib/format/items/qgroup.h"
#include "lib/format/items/devices/raid_stripe.h"
#include "lib/format/items/devices/remap.h"
#include "lib/format/items/root.h"
#include "lib/format/items/space_cache.h"
#include "lib/format/items/string_item.h"
#include "lib/format/items/uuid.h"
#include "lib/format/items/files/verity.h"

/* The registry, in the order of types. Type 0 is not in it, because it is valid for one objectid only. */
#define ITEM_ROWS(row) \
	row(KEY_INODE_ITEM, item_type_inode) \
	row(KEY_INODE_REF, item_type_inode_ref) \
	row(KEY_INODE_EXTREF, item_type_inode_extref) \
	row(KEY_XATTR_ITEM, item_type_xattr) \
	row(KEY_VERITY_DESC_ITEM, item_type_verity_desc) \
	row(KEY_VERITY_MERKLE_ITEM, item_type_verity_merkle) \
	row(KEY_ORPHAN_ITEM, item_type_orphan) \
	row(KEY_DIR_LOG_ITEM, item_type_dir_log_item) \
	row(KEY_DIR_LOG_INDEX, item_type_dir_log_index) \
	row(KEY_DIR_ITEM, item_type_dir_item) \
	row(KEY_DIR_INDEX, item_type_dir_index) \
	row(KEY_EXTENT_DATA, item_type_extent_data) \
	row(KEY_CSUM_ITEM, item_type_old_csum) \
	row(KEY_EXTENT_CSUM, item_type_csum) \
	row(KEY_ROOT_ITEM, item_type_root) \
	row(KEY_ROOT_BACKREF, item_type_root_backref) \
	row(KEY_ROOT_REF, item_type_root_ref) \
	row(KEY_EXTENT_ITEM, item_type_extent) \
	row(KEY_METADATA_ITEM, item_type_metadata) \
	row(KEY_EXTENT_OWNER_REF, item_type_extent_owner_ref) \
	row(KEY_TREE_BLOCK_REF, item_type_tree_block_ref) \
	row(KEY_EXTENT_DATA_REF, item_type_extent_data_ref) \
	row(KEY_EXTENT_REF_V0, item_type_extent_ref_v0) \
	row(KEY_SHARED_BLOCK_REF, item_type_shared_block_ref) \
	row(KEY_SHARED_DATA_REF, item_type_shared_data_ref) \
	row(KEY_BLOCK_GROUP_ITEM, item_type_block_group) \
	row(KEY_FREE_SPACE_INFO, item_type_free_space_info) \
	row(KEY_FREE_SPACE_EXTENT, item_type_free_space_extent) \
	row(KEY_FREE_SPACE_BITMAP, item_type_free_space_bitmap) \
	row(KEY_DEV_EXTENT, item_type_dev_extent) \
	row(KEY_DEV_ITEM, item_type_dev) \
	row(KEY_CHUNK_ITEM, item_type_chunk) \
	row(KEY_RAID_STRIPE, item_type_raid_stripe) \
	row(KEY_IDENTITY_REMAP, item_type_identity_remap) \
	row(KEY_REMAP, item_type_remap) \
	row(KEY_REMAP_BACKREF, item_type_remap_backref) \
	row(KEY_QGROUP_STATUS, item_type_qgroup_status) \
	row(KEY_QGROUP_INFO, item_type_qgroup_info) \
	row(KEY_QGROUP_LIMIT, item_type_qgroup_limit) \
	row(KEY_QGROUP_RELATION, item_type_qgroup_relation) \
	row(KEY_TEMPORARY_ITEM, item_type_temporary) \
	row(KEY_PERSISTENT_ITEM, item_type_persistent) \
	row(KEY_DEV_REPLACE, item_type_dev_replace) \
	row(KEY_UUID_SUBVOL, item_type_uuid_subvol) \
	row(KEY_UUID_RECEIVED_SUBVOL, item_type_uuid_received_subvol) \
	row(KEY_STRING_ITEM, item_type_string)

#define IN_ORDER(type, row) &row,
#define BY_TYPE(type, row) [type] = &row,

static const struct item_type *const rows[] = { &item_type_space_cache, ITEM_ROWS(IN_ORDER) };
const struct item_type *const item_types_by_number[256] = { ITEM_ROWS(BY_TYPE) };

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
		return err_corrupt(err, "item_size", "%s has %u bytes, minimum is %u", type->name, item->size,
				   type->min_size);
	return type->validate(ctx, item, err);
}
