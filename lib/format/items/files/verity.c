// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/files/verity.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

/* What Linux checks when a verity file is opened. */
static int verity_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	const struct disk_verity_desc *d = (const struct disk_verity_desc *)item->data;

	(void)ctx;
	if (item->key.offset)
		return 0;
	if (item->size < sizeof(*d))
		return expect_size(item, sizeof(*d), err);
	if (le64_get(d->size) > INT32_MAX)
		return err_corrupt(err, "size", "verity descriptor has invalid size %" PRIu64, le64_get(d->size));
	if (le64_get(d->reserved[0]) || le64_get(d->reserved[1]))
		return err_corrupt(err, "reserved", "verity descriptor has reserved bits set");
	if (d->encryption)
		return err_corrupt(err, "encryption", "verity descriptor has unknown encryption %u", d->encryption);
	return 0;
}

/* Nothing is printed in text. */
static void verity_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	const struct disk_verity_desc *d = (const struct disk_verity_desc *)item->data;

	(void)ctx;
	if (e->form == EMIT_JSON && !item->key.offset && item->size >= sizeof(*d)) {
		emit_u64(e, "size", "", le64_get(d->size));
		emit_u64(e, "encryption", "", d->encryption);
	}
	render_data(e, "data", item->data, item->size, flags);
}

const struct item_type item_type_verity_desc = {
	.type = KEY_VERITY_DESC_ITEM,
	.name = "VERITY_DESC_ITEM",
	.validate = verity_validate,
	.render = verity_render,
};
