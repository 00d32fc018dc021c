// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/crc32c.h"
#include "lib/format/items/extent.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

uint64_t extent_data_ref_hash(uint64_t root, uint64_t objectid, uint64_t offset)
{
	const le64 upper = le64_put(root);
	const le64 lower[2] = { le64_put(objectid), le64_put(offset) };

	return (uint64_t)crc32c(~0u, &upper, sizeof(upper)) << 31 ^ crc32c(~0u, lower, sizeof(lower));
}

uint64_t extent_ref_sequence(const struct extent_ref *ref)
{
	switch (ref->type) {
	case KEY_EXTENT_DATA_REF:
		return extent_data_ref_hash(ref->root, ref->objectid, ref->offset);
	case KEY_SHARED_BLOCK_REF:
	case KEY_SHARED_DATA_REF:
		return ref->parent;
	default:
		return ref->root;
	}
}

int extent_ref_check(const struct item_ctx *ctx, const struct extent_ref *ref, struct btrkit_error *err)
{
	switch (ref->type) {
	case KEY_EXTENT_DATA_REF:
		/* Files in the root tree belong to the v1 space cache. */
		if (!oid_is_file_tree(ref->root) && ref->root != OID_ROOT_TREE && ref->root != OID_DATA_RELOC_TREE)
			return err_corrupt(err, "root", "data reference from invalid tree %" PRIu64, ref->root);
		/* Also refused: OID_FREE_INO, the file in which Linux before 5.11 could store free inode numbers. */
		if (ref->objectid < OID_FIRST_FREE || ref->objectid > OID_LAST_FREE)
			return err_corrupt(err, "objectid", "data reference from invalid inode %" PRIu64,
					   ref->objectid);
		if (!sector_aligned(ctx, ref->offset))
			return expect_aligned(ctx, "offset", ref->offset, err);
		break;
	case KEY_SHARED_DATA_REF:
	case KEY_SHARED_BLOCK_REF:
		if (!sector_aligned(ctx, ref->parent))
			return expect_aligned(ctx, "parent", ref->parent, err);
		break;
	}
	if (!ref->count)
		return err_corrupt(err, "count", "data reference with a count of 0");
	return 0;
}

struct extent_ref_order extent_ref_order_start(void)
{
	return (struct extent_ref_order){ 0, UINT64_MAX };
}

int extent_ref_in_order(struct extent_ref_order *order, const struct extent_ref *ref, struct btrkit_error *err)
{
	const uint64_t sequence = extent_ref_sequence(ref);

	if (ref->type < order->type || (ref->type == order->type && sequence > order->sequence))
		return err_corrupt(err, "inline_ref.order", "inline reference of type %u is out of order", ref->type);
	order->type = ref->type;
	order->sequence = sequence;
	return 0;
}

/* Size of a reference in a keyed item. The data references with the same hash are stored in one item. */
static size_t keyed_ref_size(uint8_t type)
{
	switch (type) {
	case KEY_EXTENT_DATA_REF:
		return sizeof(struct disk_extent_data_ref);
	case KEY_SHARED_DATA_REF:
		return sizeof(le32);
	case KEY_EXTENT_OWNER_REF:
		return sizeof(le64);
	default:
		return 0;
	}
}

/* Reads the reference, ignoring additional data. @return false: the item is too short */
static bool keyed_ref_read(const struct item *item, struct extent_ref *ret)
{
	*ret = (struct extent_ref){ .type = item->key.type, .count = 1 };
	if (item->size < keyed_ref_size(ret->type))
		return false;
	switch (ret->type) {
	case KEY_TREE_BLOCK_REF:
		ret->root = item->key.offset;
		break;
	case KEY_SHARED_BLOCK_REF:
		ret->parent = item->key.offset;
		break;
	case KEY_EXTENT_DATA_REF:
		extent_data_ref_get((const struct disk_extent_data_ref *)item->data, ret);
		break;
	case KEY_SHARED_DATA_REF:
		ret->parent = item->key.offset;
		ret->count = le32_get(*(const le32 *)item->data);
		break;
	case KEY_EXTENT_OWNER_REF:
		ret->root = le64_get(*(const le64 *)item->data);
		break;
	}
	return true;
}

int extent_keyed_ref_decode(const struct item *item, struct extent_ref *ret, struct btrkit_error *err)
{
	const size_t size = keyed_ref_size(item->key.type);
	struct extent_ref ref;

	if (!size && item->key.type != KEY_TREE_BLOCK_REF && item->key.type != KEY_SHARED_BLOCK_REF)
		return err_corrupt(err, "key.type", "%u is not a reference type", item->key.type);
	if (item->key.type != KEY_EXTENT_DATA_REF || !item->size || item->size % size) {
		const int r = expect_size(item, size, err);

		if (r < 0)
			return r;
	}
	if (!keyed_ref_read(item, &ref))
		return expect_size(item, size, err);
	*ret = ref;
	return 0;
}

static int keyed_ref_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct extent_ref ref;
	int ret;

	if ((ret = extent_keyed_ref_decode(item, &ref, err)) < 0 ||
	    (ret = expect_aligned(ctx, "key.objectid", item->key.objectid, err)) < 0)
		return ret;
	/* The key's offset is the parent of a shared reference. */
	if (item->key.type == KEY_SHARED_BLOCK_REF || item->key.type == KEY_SHARED_DATA_REF)
		ret = expect_aligned(ctx, "key.offset", item->key.offset, err);
	return ret < 0 ? ret : extent_ref_check(ctx, &ref, err);
}

/* The text output does not repeat what is in the key. */
static void keyed_ref_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct extent_ref ref;

	(void)ctx;
	(void)flags;
	if (!keyed_ref_read(item, &ref)) {
		render_damage(e, "item_size");
		return;
	}
	switch (ref.type) {
	case KEY_TREE_BLOCK_REF:
		emit_text(e, "\t\ttree block backref");
		break;
	case KEY_SHARED_BLOCK_REF:
		emit_text(e, "\t\tshared block backref");
		break;
	case KEY_EXTENT_DATA_REF:
		objectid_emit(e, "root", "\t\textent data backref root ", ref.root, 0);
		emit_u64(e, "objectid", " objectid ", ref.objectid);
		emit_u64(e, "offset", " offset ", ref.offset);
		emit_u64(e, "count", " count ", ref.count);
		break;
	case KEY_SHARED_DATA_REF:
		emit_u64(e, "count", "\t\tshared data backref count ", ref.count);
		break;
	case KEY_EXTENT_OWNER_REF:
		emit_u64(e, "root", "\t\textent owner root ", ref.root);
		break;
	}
	emit_text(e, "\n");
	if (extent_keyed_ref_decode(item, &ref, NULL) < 0)
		render_damage(e, "item_size");
}

const struct item_type item_type_tree_block_ref = {
	.type = KEY_TREE_BLOCK_REF,
	.name = "TREE_BLOCK_REF",
	.validate = keyed_ref_validate,
	.render = keyed_ref_render,
};

const struct item_type item_type_shared_block_ref = {
	.type = KEY_SHARED_BLOCK_REF,
	.name = "SHARED_BLOCK_REF",
	.validate = keyed_ref_validate,
	.render = keyed_ref_render,
};

const struct item_type item_type_extent_data_ref = {
	.type = KEY_EXTENT_DATA_REF,
	.name = "EXTENT_DATA_REF",
	.min_size = sizeof(struct disk_extent_data_ref),
	.validate = keyed_ref_validate,
	.render = keyed_ref_render,
};

const struct item_type item_type_shared_data_ref = {
	.type = KEY_SHARED_DATA_REF,
	.name = "SHARED_DATA_REF",
	.min_size = sizeof(le32),
	.validate = keyed_ref_validate,
	.render = keyed_ref_render,
};

const struct item_type item_type_extent_owner_ref = {
	.type = KEY_EXTENT_OWNER_REF,
	.name = "EXTENT_OWNER_REF",
	.min_size = sizeof(le64),
	.validate = keyed_ref_validate,
	.render = keyed_ref_render,
};
