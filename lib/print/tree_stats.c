// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the sizes of trees. */
#include "lib/print/tree_stats.h"

#include <btrkit/inspect.h>

#include "lib/base/err.h"
#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"

static void print_types(struct emit *e, const struct btrkit_tree_stats *s)
{
	emit_array(e, "items");
	for (unsigned type = 0; type < 256; type++) {
		if (!s->types[type].count)
			continue;
		emit_object(e, NULL);
		if (e->form == EMIT_JSON)
			emit_u64(e, "type", "", type);
		key_type_emit(e, "\t", s->types[type].objectid, (uint8_t)type);
		emit_u64(e, "count", ": ", s->types[type].count);
		emit_u64(e, "bytes", " items, ", s->types[type].bytes);
		emit_text(e, " bytes\n");
		emit_object_end(e);
	}
	emit_array_end(e);
}

static void print_levels(struct emit *e, const struct btrkit_tree_stats *s)
{
	emit_array(e, "nodes");
	for (unsigned i = 0; i < s->num_levels; i++) {
		const struct btrkit_tree_level *l = &s->levels[i];

		emit_object(e, NULL);
		emit_u64(e, "level", "\tlevel ", i);
		emit_u64(e, "blocks", ": ", l->blocks);
		emit_u64(e, "items", i ? " nodes, pointers " : " leaves, items ", l->items);
		emit_u64(e, "used", ", bytes used ", l->used);
		emit_u64(e, "free", " free ", l->blocks * s->nodesize - l->used);
		emit_text(e, "\n");
		emit_object_end(e);
	}
	emit_array_end(e);
}

struct job {
	struct emit e;
	btrkit_lost_fn lost;
	void *lost_ctx;
};

static int pass_lost(void *ctx, const struct btrkit_error *what)
{
	const struct job *j = ctx;

	return j->lost(j->lost_ctx, what);
}

static int print_tree(void *ctx, const struct btrkit_tree_stats *s)
{
	struct job *j = ctx;
	struct emit *e = &j->e;
	uint64_t blocks = 0, used = 0;

	for (unsigned i = 0; i < s->num_levels; i++) {
		blocks += s->levels[i].blocks;
		used += s->levels[i].used;
	}
	emit_object(e, NULL);
	objectid_emit(e, "tree", "tree ", s->tree, 0);
	if (e->form == EMIT_JSON || s->key_offset)
		emit_u64(e, "key_offset", " ", s->key_offset);
	emit_u64(e, "bytenr", ": root block ", s->bytenr);
	emit_u64(e, "generation", " generation ", s->generation);
	emit_u64(e, "levels", "\n\tlevels ", s->num_levels);
	emit_u64(e, "blocks", " blocks ", blocks);
	emit_u64(e, "bytes", " bytes ", blocks * s->nodesize);
	emit_u64(e, "used", " used ", used);
	emit_u64(e, "free", " free ", blocks * s->nodesize - used);
	emit_u64(e, "inline_bytes", " inline ", s->inline_bytes);
	emit_text(e, "\n");
	print_levels(e, s);
	print_types(e, s);
	if (s->damage) {
		emit_str(e, "damaged", "\tdamaged: ", s->damage->message);
		emit_word(e, "cause", btrkit_cause_name(s->damage->cause));
		emit_u64(e, "lost_blocks", "; blocks that cannot be read: ", s->lost_blocks);
		emit_text(e, "\n");
	}
	emit_object_end(e);
	return emit_failed(e);
}

int print_tree_stats(struct btrkit_fs *fs, const uint64_t *trees, size_t n, enum btrkit_format format,
		     btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	struct job j = { .lost = lost, .lost_ctx = lost_ctx };
	int r = list_begin(&j.e, format, "tree-stats", write, ctx, err);

	return r ? r : list_end(&j.e, btrkit_tree_stats_around(fs, trees, n, print_tree, lost ? pass_lost : NULL, &j,
							err));
}
