// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/raid_stripe.h"

#include "lib/base/reader.h"
#include "lib/format/feature_bits.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int raid_stripe_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	if (!(ctx->incompat & INCOMPAT_RAID_STRIPE_TREE))
		return err_corrupt(err, "key.type", "RAID_STRIPE without the raid-stripe-tree feature");
	if (item->size % sizeof(struct disk_raid_stride))
		return err_corrupt(err, "item_size", "stripe extent has invalid size %" PRIu32, item->size);
	return expect_aligned(ctx, "key.objectid", item->key.objectid, err);
}

static void raid_stripe_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct reader r = reader_of(item->data, item->size);
	const struct disk_raid_stride *d;

	(void)ctx;
	(void)flags;
	emit_array(e, "stripes");
	for (unsigned i = 0; (d = reader_take(&r, sizeof(*d))); i++) {
		emit_object(e, NULL);
		if (e->form == EMIT_TEXT)
			emit_u64(e, "", "\t\t\tstripe ", i);
		emit_u64(e, "devid", " devid ", le64_get(d->devid));
		emit_u64(e, "physical", " physical ", le64_get(d->physical));
		emit_text(e, "\n");
		emit_object_end(e);
	}
	emit_array_end(e);
	if (reader_left(&r))
		render_damage(e, "item_size");
}

const struct item_type item_type_raid_stripe = {
	.type = KEY_RAID_STRIPE,
	.name = "RAID_STRIPE",
	.min_size = sizeof(struct disk_raid_stride),
	.validate = raid_stripe_validate,
	.render = raid_stripe_render,
};
