// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/devices/dev_replace.h"

#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

static int dev_replace_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	(void)ctx;
	/* Newer kernels may add fields at the end. */
	if (item->size < sizeof(struct disk_dev_replace))
		return expect_size(item, sizeof(struct disk_dev_replace), err);
	return 0;
}

static void name_render(struct emit *e, const char *name, const char *name_key, const char *words,
			const char *const *names, size_t count, uint64_t v)
{
	if (e->form == EMIT_JSON) {
		emit_u64(e, name, "", v);
		if (v < count)
			emit_word(e, name_key, names[v]);
		return;
	}
	emit_text(e, words);
	if (v < count)
		emit_text(e, names[v]);
	else
		emit_textf(e, "unknown(%" PRIu64 ")", v);
}

static void time_render(struct emit *e, const char *name, const char *words, uint64_t sec)
{
	emit_u64(e, name, words, sec);
	emit_text(e, " (");
	render_local_time(e, sec);
	emit_text(e, ")\n");
}

static void dev_replace_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	static const char *const modes[] = { "ALWAYS", "AVOID" };
	static const char *const states[] = { "NEVER_STARTED", "STARTED", "FINISHED", "CANCELED", "SUSPENDED" };
	const struct disk_dev_replace *d = render_struct(e, item, sizeof(*d));

	(void)ctx;
	(void)flags;
	if (!d)
		return;
	render_signed(e, "src_devid", "\t\tsrc devid ", le64_get(d->src_devid));
	emit_u64(e, "cursor_left", " cursor left ", le64_get(d->cursor_left));
	emit_u64(e, "cursor_right", " cursor right ", le64_get(d->cursor_right));
	name_render(e, "mode", "mode_name", " mode ", modes, sizeof(modes) / sizeof(modes[0]), le64_get(d->mode));
	name_render(e, "state", "state_name", "\n\t\tstate ", states, sizeof(states) / sizeof(states[0]),
		    le64_get(d->state));
	emit_u64(e, "num_write_errors", " write errors ", le64_get(d->num_write_errors));
	emit_u64(e, "num_uncorrectable_read_errors", " uncorrectable read errors ",
		 le64_get(d->num_uncorrectable_read_errors));
	emit_text(e, "\n");
	time_render(e, "time_started", "\t\tstart time ", le64_get(d->time_started));
	/* The text output of btrfs-progs 6.19 has the start time in both lines. */
	time_render(e, "time_stopped", "\t\tstop time ",
		    le64_get(e->form == EMIT_JSON ? d->time_stopped : d->time_started));
}

const struct item_type item_type_dev_replace = {
	.type = KEY_DEV_REPLACE,
	.name = "DEV_REPLACE",
	.min_size = sizeof(struct disk_dev_replace),
	.validate = dev_replace_validate,
	.render = dev_replace_render,
};
