// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"
#include "lib/format/items/root.h"

int root_ref_decode(const struct item *item, struct root_ref *ret, struct btrkit_error *err)
{
	const struct disk_root_ref *d = (const struct disk_root_ref *)item->data;
	uint16_t name_len;

	if (item->size < sizeof(*d))
		return expect_size(item, sizeof(*d), err);
	name_len = le16_get(d->name_len);
	if (!name_len || name_len > NAME_LEN_MAX || item->size - sizeof(*d) != name_len)
		return err_corrupt(err, "name_len", "name of %u bytes in a root reference of %" PRIu32, name_len,
				   item->size);
	*ret = (struct root_ref){
		.dirid = le64_get(d->dirid),
		.sequence = le64_get(d->sequence),
		.name = item->data + sizeof(*d),
		.name_len = name_len,
	};
	return 0;
}

static int root_ref_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct root_ref ref;

	(void)ctx;
	return root_ref_decode(item, &ref, err);
}

static void root_ref_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_root_ref *d = render_struct(e, item, sizeof(*d));
	const uint8_t *name;
	size_t len, left;

	(void)ctx;
	if (!d)
		return;
	emit_u64(e, "dirid", item->key.type == KEY_ROOT_REF ? "\t\troot ref key dirid " : "\t\troot backref key dirid ",
		 le64_get(d->dirid));
	emit_u64(e, "sequence", " sequence ", le64_get(d->sequence));
	name = item->data + sizeof(*d);
	left = item->size - sizeof(*d);
	len = le16_get(d->name_len) < left ? le16_get(d->name_len) : left;
	if (e->form == EMIT_JSON)
		emit_u64(e, "name_len", "", le16_get(d->name_len));
	/* Not escaped, like in btrfs-progs, which however does not hide it. */
	if (flags & RENDER_HIDE_NAMES)
		emit_str(e, "name", " name ", "HIDDEN");
	else
		emit_name(e, "name", " name ", name, render_text_length(e, name, len));
	emit_text(e, "\n");
	if (left < le16_get(d->name_len))
		render_damage(e, "name_len");
}

const struct item_type item_type_root_ref = {
	.type = KEY_ROOT_REF,
	.name = "ROOT_REF",
	.min_size = sizeof(struct disk_root_ref),
	.validate = root_ref_validate,
	.render = root_ref_render,
};

const struct item_type item_type_root_backref = {
	.type = KEY_ROOT_BACKREF,
	.name = "ROOT_BACKREF",
	.min_size = sizeof(struct disk_root_ref),
	.validate = root_ref_validate,
	.render = root_ref_render,
};
