// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/extent.h"

#include "lib/base/reader.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int extent_check_key(const struct item_ctx *ctx, const struct btrkit_key *key, struct btrkit_error *err)
{
	if (key->type == KEY_METADATA_ITEM) {
		if (!(ctx->incompat & INCOMPAT_SKINNY_METADATA))
			return err_corrupt(err, "key.type", "METADATA_ITEM without the skinny-metadata feature");
		if (key->offset >= LEVELS_MAX)
			return expect_level("key.offset", key->offset, err);
	}
	return expect_aligned(ctx, "key.objectid", key->objectid, err);
}

static int extent_check_flags(const struct item_ctx *ctx, const struct btrkit_key *key, uint64_t flags,
			      struct btrkit_error *err)
{
	const uint64_t kind = flags & (EXTENT_FLAG_DATA | EXTENT_FLAG_TREE_BLOCK);

	if (kind == EXTENT_FLAG_TREE_BLOCK) {
		if (key->type == KEY_EXTENT_ITEM && key->offset != ctx->nodesize)
			return err_corrupt(err, "key.offset", "tree block has invalid size %" PRIu64, key->offset);
		return 0;
	}
	if (kind != EXTENT_FLAG_DATA || key->type != KEY_EXTENT_ITEM || (flags & EXTENT_FLAG_FULL_BACKREF))
		return err_corrupt(err, "flags", "invalid extent flags 0x%" PRIx64 " in an item of type %u", flags,
				   key->type);
	return expect_aligned(ctx, "key.offset", key->offset, err);
}

int extent_item_decode(const struct item_ctx *ctx, const struct item *item, struct extent_item *ret,
		       struct btrkit_error *err)
{
	struct reader r = reader_of(item->data, item->size);
	const struct disk_extent_item *d = reader_take(&r, sizeof(*d));
	const bool skinny = item->key.type == KEY_METADATA_ITEM;
	struct extent_item ei;
	int err_ret;

	if (!d)
		return err_corrupt(err, "item_size", "extent item is too short: %" PRIu32 " bytes", item->size);
	ei = (struct extent_item){
		.bytenr = item->key.objectid,
		.num_bytes = skinny ? ctx->nodesize : item->key.offset,
		.refs = le64_get(d->refs),
		.generation = le64_get(d->generation),
		.flags = le64_get(d->flags),
		.level = skinny ? (uint8_t)item->key.offset : 0,
	};
	if ((err_ret = extent_check_key(ctx, &item->key, err)) < 0 ||
	    (err_ret = expect_generation(ctx, "generation", ei.generation, err)) < 0 ||
	    (err_ret = extent_check_flags(ctx, &item->key, ei.flags, err)) < 0)
		return err_ret;
	if ((ei.flags & EXTENT_FLAG_TREE_BLOCK) && !skinny) {
		const struct disk_tree_block_info *info = reader_take(&r, sizeof(*info));

		if (!info)
			return err_corrupt(err, "item_size", "tree block item is too short: %" PRIu32 " bytes",
					   item->size);
		ei.level = info->level;
		err_ret = expect_level("level", ei.level, err);
		if (err_ret < 0)
			return err_ret;
	}
	ei.pos = r.pos;
	ei.end = r.end;
	*ret = ei;
	return 0;
}

/* Common beginning of inline references, except data references. */
struct disk_inline_ref {
	uint8_t type;
	le64 offset;
};
DISK_ASSERT_SIZE(disk_inline_ref, 9);
DISK_ASSERT_AT(disk_inline_ref, offset, 1);

size_t extent_inline_ref_size(uint8_t type)
{
	switch (type) {
	case KEY_TREE_BLOCK_REF:
	case KEY_SHARED_BLOCK_REF:
	case KEY_EXTENT_OWNER_REF:
		return sizeof(struct disk_inline_ref);
	case KEY_EXTENT_DATA_REF:
		return 1 + sizeof(struct disk_extent_data_ref);
	case KEY_SHARED_DATA_REF:
		return sizeof(struct disk_inline_ref) + sizeof(le32);
	default:
		return 0;
	}
}

int extent_item_next_ref(struct extent_item *ei, struct extent_ref *ret, struct btrkit_error *err)
{
	const size_t left = (size_t)(ei->end - ei->pos);
	const struct disk_inline_ref *d = (const struct disk_inline_ref *)ei->pos;
	struct extent_ref ref = { .count = 1 };
	size_t size;

	if (!left)
		return 1;
	size = extent_inline_ref_size(d->type);
	if (!size)
		return err_corrupt(err, "inline_ref.type", "inline reference has unknown type %u", d->type);
	if (left < size)
		return err_corrupt(err, "item_size", "inline reference exceeds its extent item");
	ref.type = d->type;
	switch (d->type) {
	case KEY_TREE_BLOCK_REF:
	case KEY_EXTENT_OWNER_REF:
		ref.root = le64_get(d->offset);
		break;
	case KEY_EXTENT_DATA_REF:
		extent_data_ref_get((const struct disk_extent_data_ref *)(ei->pos + 1), &ref);
		break;
	case KEY_SHARED_DATA_REF:
		ref.count = le32_get(*(const le32 *)(ei->pos + sizeof(*d)));
		ref.parent = le64_get(d->offset);
		break;
	case KEY_SHARED_BLOCK_REF:
		ref.parent = le64_get(d->offset);
		break;
	}
	ei->pos += size;
	*ret = ref;
	return 0;
}

void extent_inline_ref_put(const struct extent_ref *ref, uint8_t *to)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	const struct disk_inline_ref d = { ref->type, le64_put(shared ? ref->parent : ref->root) };
	struct disk_extent_data_ref data;
	le32 count = le32_put(ref->count);

	if (ref->type == KEY_EXTENT_DATA_REF) {
		data = extent_data_ref_put(ref);
		to[0] = ref->type;
		memcpy(to + 1, &data, sizeof(data));
		return;
	}
	memcpy(to, &d, sizeof(d));
	if (ref->type == KEY_SHARED_DATA_REF)
		memcpy(to + sizeof(d), &count, sizeof(count));
}

static int extent_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct extent_ref_order order = extent_ref_order_start();
	struct extent_item ei;
	struct extent_ref ref;
	uint64_t refs = 0;
	int ret = extent_item_decode(ctx, item, &ei, err);

	if (ret < 0)
		return ret;
	while ((ret = extent_item_next_ref(&ei, &ref, err)) == 0) {
		if ((ret = extent_ref_check(ctx, &ref, err)) < 0 || (ret = extent_ref_in_order(&order, &ref, err)) < 0)
			return ret;
		if (ref.type != KEY_EXTENT_OWNER_REF)
			refs += ref.count;
	}
	if (ret < 0)
		return ret;
	if (refs > ei.refs)
		return err_corrupt(err, "refs", "extent item has %" PRIu64 " references, but %" PRIu64 " inline",
				   ei.refs, refs);
	return 0;
}

static void extent_flags_render(struct emit *e, uint64_t flags)
{
	static const struct flag_name names[] = {
		{ EXTENT_FLAG_DATA, "DATA" },
		{ EXTENT_FLAG_TREE_BLOCK, "TREE_BLOCK" },
		{ EXTENT_FLAG_FULL_BACKREF, "FULL_BACKREF" },
		{ 0, NULL },
	};

	emit_text(e, " flags ");
	if (e->form == EMIT_JSON) {
		emit_u64(e, "flags", "", flags);
		flags_names_emit(e, "flags_names", names, flags);
		return;
	}
	if (flags & EXTENT_FLAG_DATA)
		emit_text(e, "DATA");
	if (flags & EXTENT_FLAG_TREE_BLOCK)
		emit_text(e, flags & EXTENT_FLAG_DATA ? "|TREE_BLOCK" : "TREE_BLOCK");
	if (flags & EXTENT_FLAG_FULL_BACKREF)
		emit_text(e, "|FULL_BACKREF");
	emit_text(e, "\n");
}

/*
 * Renders the part of a tree block's item between the fixed struct and the references. @return false if it is too short
 */
static bool tree_block_render(struct emit *e, const struct btrkit_key *key, struct reader *r)
{
	const struct disk_tree_block_info *info;
	struct btrkit_key first;

	if (key->type == KEY_METADATA_ITEM) {
		if (e->form == EMIT_JSON)
			emit_u64(e, "level", "", key->offset);
		else
			emit_s64(e, "level", "\t\ttree block skinny level ", (int32_t)key->offset);
		emit_text(e, "\n");
		return true;
	}
	info = reader_take(r, sizeof(*info));
	if (!info)
		return false;
	first = key_get(&info->key);
	key_emit(e, "first_key", "\t\ttree block ", &first);
	emit_u64(e, "level", " level ", info->level);
	emit_text(e, "\n");
	return true;
}

static void inline_ref_render(struct emit *e, const struct extent_ref *ref, unsigned flags)
{
	/* btrfs-progs 6.19 has the tab of owner references behind the bracket, where it reads "textent". */
	const bool misplaced = flags & RENDER_COMPAT_6_19;

	emit_object(e, NULL);
	emit_u64(e, "type", misplaced && ref->type == KEY_EXTENT_OWNER_REF ? "\t(" : "\t\t(", ref->type);
	if (e->form == EMIT_JSON)
		emit_word(e, "type_name", key_type_name(0, ref->type));
	emit_x64(e, "sequence", " ", extent_ref_sequence(ref));
	switch (ref->type) {
	case KEY_TREE_BLOCK_REF:
		objectid_emit(e, "root", ") tree block backref root ", ref->root, 0);
		break;
	case KEY_SHARED_BLOCK_REF:
		emit_u64(e, "parent", ") shared block backref parent ", ref->parent);
		break;
	case KEY_EXTENT_DATA_REF:
		objectid_emit(e, "root", ") extent data backref root ", ref->root, 0);
		emit_u64(e, "objectid", " objectid ", ref->objectid);
		emit_u64(e, "offset", " offset ", ref->offset);
		emit_u64(e, "count", " count ", ref->count);
		break;
	case KEY_SHARED_DATA_REF:
		emit_u64(e, "parent", ") shared data backref parent ", ref->parent);
		emit_u64(e, "count", " count ", ref->count);
		break;
	case KEY_EXTENT_OWNER_REF:
		emit_u64(e, "root", misplaced ? ") textent owner root " : ") extent owner root ", ref->root);
		break;
	}
	emit_text(e, "\n");
	emit_object_end(e);
}

static void extent_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct reader r = reader_of(item->data, item->size);
	const struct disk_extent_item *d = render_struct(e, item, sizeof(*d));
	struct extent_item refs;
	struct extent_ref ref;
	int ret;

	(void)ctx;
	if (!d)
		return;
	reader_take(&r, sizeof(*d));
	emit_u64(e, "refs", "\t\trefs ", le64_get(d->refs));
	emit_u64(e, "generation", " gen ", le64_get(d->generation));
	extent_flags_render(e, le64_get(d->flags));
	if ((item->key.type == KEY_METADATA_ITEM || (le64_get(d->flags) & EXTENT_FLAG_TREE_BLOCK)) &&
	    !tree_block_render(e, &item->key, &r)) {
		render_damage(e, "item_size");
		return;
	}
	refs = (struct extent_item){ .pos = r.pos, .end = r.end };
	emit_array(e, "inline_refs");
	while ((ret = extent_item_next_ref(&refs, &ref, NULL)) == 0)
		inline_ref_render(e, &ref, flags);
	emit_array_end(e);
	if (ret < 0)
		render_damage(e, "inline_refs");
}

const struct item_type item_type_extent = {
	.type = KEY_EXTENT_ITEM,
	.name = "EXTENT_ITEM",
	.min_size = sizeof(struct disk_extent_item),
	.validate = extent_validate,
	.render = extent_render,
};

const struct item_type item_type_metadata = {
	.type = KEY_METADATA_ITEM,
	.name = "METADATA_ITEM",
	.min_size = sizeof(struct disk_extent_item),
	.validate = extent_validate,
	.render = extent_render,
};
