// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/format/items/qgroup.h"

#include "lib/format/feature_bits.h"
#include "lib/format/items/check_items.h"
#include "lib/format/items/render.h"

int qgroup_status_decode(const struct item *item, struct qgroup_status *ret, struct btrkit_error *err)
{
	const struct disk_qgroup_status *d = (const struct disk_qgroup_status *)item->data;

	if (item->size < QGROUP_STATUS_SHORT)
		return expect_size(item, sizeof(*d), err);
	*ret = (struct qgroup_status){
		.version = le64_get(d->version),
		.generation = le64_get(d->generation),
		.flags = le64_get(d->flags),
		.rescan = le64_get(d->rescan),
		.enable_gen = item->size >= sizeof(*d) ? le64_get(d->enable_gen) : 0,
	};
	return 0;
}

int qgroup_info_decode(const struct item *item, struct qgroup_info *ret, struct btrkit_error *err)
{
	const struct disk_qgroup_info *d = (const struct disk_qgroup_info *)item->data;

	if (item->size < sizeof(*d))
		return expect_size(item, sizeof(*d), err);
	*ret = (struct qgroup_info){
		.id = item->key.offset,
		.generation = le64_get(d->generation),
		.rfer = le64_get(d->rfer),
		.rfer_cmpr = le64_get(d->rfer_cmpr),
		.excl = le64_get(d->excl),
		.excl_cmpr = le64_get(d->excl_cmpr),
	};
	return 0;
}

int qgroup_limit_decode(const struct item *item, struct qgroup_limit *ret, struct btrkit_error *err)
{
	const struct disk_qgroup_limit *d = (const struct disk_qgroup_limit *)item->data;

	if (item->size < sizeof(*d))
		return expect_size(item, sizeof(*d), err);
	*ret = (struct qgroup_limit){
		.id = item->key.offset,
		.flags = le64_get(d->flags),
		.max_rfer = le64_get(d->max_rfer),
		.max_excl = le64_get(d->max_excl),
		.rsv_rfer = le64_get(d->rsv_rfer),
		.rsv_excl = le64_get(d->rsv_excl),
	};
	return 0;
}

static int status_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct qgroup_status s;

	(void)ctx;
	return qgroup_status_decode(item, &s, err);
}

static int info_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct qgroup_info q;

	(void)ctx;
	return qgroup_info_decode(item, &q, err);
}

static int limit_validate(const struct item_ctx *ctx, const struct item *item, struct btrkit_error *err)
{
	struct qgroup_limit l;

	(void)ctx;
	return qgroup_limit_decode(item, &l, err);
}

static void status_flags_render(struct emit *e, uint64_t flags)
{
	static const struct flag_name names[] = {
		{ QGROUP_STATUS_SIMPLE_MODE, "SIMPLE_MODE" },
		{ QGROUP_STATUS_RESCAN, "SCANNING" },
		{ QGROUP_STATUS_INCONSISTENT, "INCONSISTENT" },
		{ 0, NULL },
	};
	const uint64_t known = QGROUP_STATUS_ON | QGROUP_STATUS_SIMPLE_MODE | QGROUP_STATUS_RESCAN |
			       QGROUP_STATUS_INCONSISTENT;

	if (e->form == EMIT_JSON) {
		emit_u64(e, "flags", "", flags);
		emit_array(e, "flags_names");
		emit_str(e, NULL, "", flags & QGROUP_STATUS_ON ? "ON" : "OFF");
		for (const struct flag_name *n = names; n->bit; n++)
			if (flags & n->bit)
				emit_word(e, NULL, n->name);
		emit_array_end(e);
		return;
	}
	emit_text(e, flags & QGROUP_STATUS_ON ? " flags ON" : " flags OFF");
	if (flags & known & ~QGROUP_STATUS_ON)
		emit_text(e, "|");
	flags_text(e, names, flags);
	if (flags & ~known) {
		emit_x64(e, "", "|UNKNOWN(", flags & ~known);
		emit_text(e, ")");
	}
}

static void status_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct qgroup_status s;

	(void)flags;
	if (qgroup_status_decode(item, &s, NULL) < 0) {
		render_damage(e, "item_size");
		return;
	}
	emit_u64(e, "version", "\t\tversion ", s.version);
	emit_u64(e, "generation", " generation ", s.generation);
	status_flags_render(e, s.flags);
	emit_u64(e, "rescan", " scan ", s.rescan);
	if (ctx->incompat & INCOMPAT_SIMPLE_QUOTA || e->form == EMIT_JSON)
		emit_u64(e, "enable_gen", " enable_gen ", s.enable_gen);
	emit_text(e, "\n");
}

static void info_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct qgroup_info q;

	(void)ctx;
	(void)flags;
	if (qgroup_info_decode(item, &q, NULL) < 0) {
		render_damage(e, "item_size");
		return;
	}
	emit_u64(e, "generation", "\t\tgeneration ", q.generation);
	emit_u64(e, "rfer", "\n\t\treferenced ", q.rfer);
	emit_u64(e, "rfer_cmpr", " referenced_compressed ", q.rfer_cmpr);
	emit_u64(e, "excl", "\n\t\texclusive ", q.excl);
	emit_u64(e, "excl_cmpr", " exclusive_compressed ", q.excl_cmpr);
	emit_text(e, "\n");
}

static void limit_render(struct emit *e, const struct item_ctx *ctx, const struct item *item, unsigned flags)
{
	struct qgroup_limit l;

	(void)ctx;
	(void)flags;
	if (qgroup_limit_decode(item, &l, NULL) < 0) {
		render_damage(e, "item_size");
		return;
	}
	if (e->form == EMIT_JSON)
		emit_u64(e, "flags", "", l.flags);
	emit_textf(e, "\t\tflags %" PRIx64, l.flags);
	render_signed(e, "max_rfer", "\n\t\tmax_referenced ", l.max_rfer);
	render_signed(e, "max_excl", " max_exclusive ", l.max_excl);
	render_signed(e, "rsv_rfer", "\n\t\trsv_referenced ", l.rsv_rfer);
	render_signed(e, "rsv_excl", " rsv_exclusive ", l.rsv_excl);
	emit_text(e, "\n");
}

const struct item_type item_type_qgroup_status = {
	.type = KEY_QGROUP_STATUS,
	.name = "QGROUP_STATUS",
	.min_size = QGROUP_STATUS_SHORT,
	.validate = status_validate,
	.render = status_render,
};

const struct item_type item_type_qgroup_info = {
	.type = KEY_QGROUP_INFO,
	.name = "QGROUP_INFO",
	.min_size = sizeof(struct disk_qgroup_info),
	.validate = info_validate,
	.render = info_render,
};

const struct item_type item_type_qgroup_limit = {
	.type = KEY_QGROUP_LIMIT,
	.name = "QGROUP_LIMIT",
	.min_size = sizeof(struct disk_qgroup_limit),
	.validate = limit_validate,
	.render = limit_render,
};
