// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/base/reader.h"
#include "lib/format/items/files/inode.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

struct inode_ref_iter inode_ref_first(const struct item *item)
{
	return (struct inode_ref_iter){
		.pos = item->data,
		.end = item->data + item->size,
		.parent = item->key.offset,
		.extended = item->key.type == KEY_INODE_EXTREF,
	};
}

/* Reads the fixed part of a reference of either type. @return false if it does not fit */
static bool inode_ref_get(struct reader *r, bool extended, struct inode_ref *ret)
{
	if (extended) {
		const struct disk_inode_extref *d = reader_take(r, sizeof(*d));

		if (!d)
			return false;
		ret->parent = le64_get(d->parent);
		ret->index = le64_get(d->index);
		ret->name_len = le16_get(d->name_len);
	} else {
		const struct disk_inode_ref *d = reader_take(r, sizeof(*d));

		if (!d)
			return false;
		ret->index = le64_get(d->index);
		ret->name_len = le16_get(d->name_len);
	}
	return true;
}

int inode_ref_next(struct inode_ref_iter *it, struct inode_ref *ret, struct btrkit_error *err)
{
	struct reader r = { it->pos, it->end };
	struct inode_ref ref = { .parent = it->parent };

	if (!reader_left(&r))
		return 1;
	if (!inode_ref_get(&r, it->extended, &ref))
		return err_corrupt(err, "item_size", "inode reference exceeds its item");
	ref.name = reader_take(&r, ref.name_len);
	if (!ref.name)
		return err_corrupt(err, "name_len", "name of %u bytes exceeds the inode reference", ref.name_len);
	it->pos = r.pos;
	*ret = ref;
	return 0;
}

static int inode_ref_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct inode_ref_iter it = inode_ref_first(item);
	struct inode_ref ref;
	int ret;

	(void)ctx;
	while ((ret = inode_ref_next(&it, &ref, err)) == 0)
		;
	return ret < 0 ? ret : 0;
}

static void inode_ref_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const bool extended = item->key.type == KEY_INODE_EXTREF;
	struct reader r = reader_of(item->data, item->size);
	const char *damaged = NULL;

	(void)ctx;
	emit_array(e, "names");
	while (reader_left(&r) && !damaged) {
		struct inode_ref ref = { 0 };
		size_t len;

		if (!inode_ref_get(&r, extended, &ref)) {
			damaged = "item_size";
			break;
		}
		emit_object(e, NULL);
		emit_u64(e, "index", "\t\tindex ", ref.index);
		if (extended)
			emit_u64(e, "parent", " parent ", ref.parent);
		emit_u64(e, "name_len", " namelen ", ref.name_len);
		len = reader_left(&r) < ref.name_len ? reader_left(&r) : ref.name_len;
		if (len < ref.name_len)
			damaged = "name_len";
		render_name(e, "name", " name: ", reader_take(&r, len), len, flags);
		emit_text(e, "\n");
		emit_object_end(e);
	}
	emit_array_end(e);
	if (damaged)
		render_damage(e, damaged);
}

/* The item contains at least one name, which is not empty. */
const struct item_type item_type_inode_ref = {
	.type = KEY_INODE_REF,
	.name = "INODE_REF",
	.min_size = sizeof(struct disk_inode_ref) + 1,
	.validate = inode_ref_validate,
	.render = inode_ref_render,
};

const struct item_type item_type_inode_extref = {
	.type = KEY_INODE_EXTREF,
	.name = "INODE_EXTREF",
	.min_size = sizeof(struct disk_inode_extref),
	.validate = inode_ref_validate,
	.render = inode_ref_render,
};
