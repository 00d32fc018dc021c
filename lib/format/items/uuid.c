// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/uuid.h"

#include "lib/base/reader.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int uuid_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	if (item->size % sizeof(le64))
		return err_corrupt(err, "item_size", "list of subvolumes has invalid size %" PRIu32, item->size);
	return 0;
}

static void uuid_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct reader r = reader_of(item->data, item->size);
	const le64 *id;

	(void)ctx;
	(void)flags;
	if (item->size % sizeof(le64)) {
		emit_textf(e, "btrfs: uuid item with illegal size %" PRIu32 "!\n", item->size);
		if (e->form == EMIT_JSON)
			render_damage(e, "item_size");
		return;
	}
	emit_array(e, "subvol_ids");
	while ((id = reader_take(&r, sizeof(*id)))) {
		emit_u64(e, NULL, "\t\tsubvol_id ", le64_get(*id));
		emit_text(e, "\n");
	}
	emit_array_end(e);
}

const struct item_type item_type_uuid_subvol = {
	.type = KEY_UUID_SUBVOL,
	.name = "UUID_KEY_SUBVOL",
	.min_size = sizeof(le64),
	.validate = uuid_validate,
	.render = uuid_render,
};

const struct item_type item_type_uuid_received_subvol = {
	.type = KEY_UUID_RECEIVED_SUBVOL,
	.name = "UUID_KEY_RECEIVED_SUBVOL",
	.min_size = sizeof(le64),
	.validate = uuid_validate,
	.render = uuid_render,
};
