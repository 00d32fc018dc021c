// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/balance.h"

#include "lib/base/csum.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int temporary_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	if (item->key.objectid == OID_BALANCE && item->size < sizeof(struct disk_balance))
		return expect_size(item, sizeof(struct disk_balance), err);
	return 0;
}

static void args_render(struct emit *e, const char *name, const char *words, const struct disk_balance_args *d)
{
	emit_object(e, name);
	emit_text(e, words);
	emit_u64(e, "profiles", "\t\tprofiles ", le64_get(d->profiles));
	emit_u64(e, "devid", " devid ", le64_get(d->devid));
	emit_u64(e, "target", " target ", le64_get(d->target));
	emit_u64(e, "flags", " flags ", le64_get(d->flags));
	emit_u64(e, "usage_min", "\n\t\tusage_min ", le32_get(d->usage_min));
	emit_u64(e, "usage_max", " usage_max ", le32_get(d->usage_max));
	emit_u64(e, "pstart", " pstart ", le64_get(d->pstart));
	emit_u64(e, "pend", " pend ", le64_get(d->pend));
	emit_u64(e, "vstart", "\n\t\tvstart ", le64_get(d->vstart));
	emit_u64(e, "vend", " vend ", le64_get(d->vend));
	emit_u64(e, "limit_min", " limit_min ", le32_get(d->limit_min));
	emit_u64(e, "limit_max", " limit_max ", le32_get(d->limit_max));
	emit_u64(e, "stripes_min", "\n\t\tstripes_min ", le32_get(d->stripes_min));
	emit_u64(e, "stripes_max", " stripes_max ", le32_get(d->stripes_max));
	emit_text(e, "\n");
	emit_object_end(e);
}

static void balance_render(struct emit *e, const struct item *item)
{
	const struct disk_balance *d = render_struct(e, item, sizeof(*d));

	if (!d)
		return;
	emit_u64(e, "flags", "\t\tbalance status flags ", le64_get(d->flags));
	emit_text(e, "\n");
	args_render(e, "data_args", "\t\tDATA\n", &d->data);
	args_render(e, "meta_args", "\t\tMETADATA\n", &d->meta);
	args_render(e, "sys_args", "\t\tSYSTEM\n", &d->sys);
}

/* The checksum type to which a conversion is in progress. */
static void csum_change_render(struct emit *e, const struct item *item, unsigned flags)
{
	const uint64_t type = item->key.offset;
	const struct csum_kind *kind = type <= UINT16_MAX ? csum_kind_find((uint16_t)type) : NULL;

	if (kind) {
		emit_str(e, "target_csum", "\t\ttarget csum type ", kind->name);
		emit_textf(e, " (%" PRIu64 ")\n", type);
	} else {
		emit_textf(e, "\t\tunknown csum type %" PRIu64 "\n", type);
	}
	if (item->size)
		render_data(e, "data", item->data, item->size, flags);
}

static void temporary_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	if (e->form == EMIT_TEXT) {
		objectid_emit(e, "", "\t\ttemporary item objectid ", item->key.objectid, KEY_TEMPORARY_ITEM);
		emit_u64(e, "", " offset ", item->key.offset);
		emit_text(e, "\n");
	}
	if (item->key.objectid == OID_BALANCE)
		balance_render(e, item);
	else if (item->key.objectid == OID_CSUM_CHANGE)
		csum_change_render(e, item, flags);
	else
		render_unknown(e, "\t\tunknown temporary item objectid ", item, flags);
}

const struct item_type item_type_temporary = {
	.type = KEY_TEMPORARY_ITEM,
	.name = "TEMPORARY_ITEM",
	.validate = temporary_validate,
	.render = temporary_render,
};
