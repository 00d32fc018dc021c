// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/dev_stats.h"

#include <inttypes.h>

#include "lib/format/items/render.h"

static int persistent_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	(void)item;
	(void)err;
	return 0;
}

/* Values added by newer kernels. */
static void unknown_render(struct emit *e, const struct item *item)
{
	const le64 *values = (const le64 *)item->data;

	emit_textf(e, "\t\tunknown stats item bytes %zu", item->size - sizeof(struct disk_dev_stats));
	emit_array(e, "unknown");
	for (size_t i = DEV_STATS; (i + 1) * sizeof(le64) <= item->size; i++) {
		emit_textf(e, "\t\tunknown item %zu offset %zu value %" PRIu64 "\n", i, i * sizeof(le64),
			   le64_get(values[i]));
		if (e->form == EMIT_JSON)
			emit_u64(e, NULL, "", le64_get(values[i]));
	}
	emit_array_end(e);
	if (item->size % sizeof(le64))
		render_damage(e, "item_size");
}

static void dev_stats_render(struct emit *e, const struct item *item)
{
	static const struct {
		const char *name, *words;
	} stats[DEV_STATS] = {
		[DEV_STAT_WRITE] = { "write_errs", "\t\twrite_errs " },
		[DEV_STAT_READ] = { "read_errs", " read_errs " },
		[DEV_STAT_FLUSH] = { "flush_errs", " flush_errs " },
		[DEV_STAT_CORRUPTION] = { "corruption_errs", " corruption_errs " },
		[DEV_STAT_GENERATION] = { "generation_errs", " generation " },
	};
	struct disk_dev_stats d = { 0 };

	/* Like in Linux, values missing from a short item are zero. */
	memcpy(&d, item->data, item->size < sizeof(d) ? item->size : sizeof(d));
	emit_text(e, "\t\tdevice stats\n");
	for (int i = 0; i < DEV_STATS; i++)
		emit_u64(e, stats[i].name, stats[i].words, le64_get(d.values[i]));
	emit_text(e, "\n");
	if (item->size > sizeof(d))
		unknown_render(e, item);
}

static void persistent_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	(void)ctx;
	if (e->form == EMIT_TEXT) {
		objectid_emit(e, "", "\t\tpersistent item objectid ", item->key.objectid, KEY_PERSISTENT_ITEM);
		emit_u64(e, "", " offset ", item->key.offset);
		emit_text(e, "\n");
	}
	if (item->key.objectid == OID_DEV_STATS)
		dev_stats_render(e, item);
	else
		render_unknown(e, "\t\tunknown persistent item objectid ", item, flags);
}

const struct item_type item_type_persistent = {
	.type = KEY_PERSISTENT_ITEM,
	.name = "PERSISTENT_ITEM",
	.validate = persistent_validate,
	.render = persistent_render,
};
