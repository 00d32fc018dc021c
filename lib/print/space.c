// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the status of the free space caches as text or JSON Lines. */
#include "lib/print/space.h"

#include <btrkit/space.h>

#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"

static const char *const verdict_names[] = { "absent", "equal", "different", "ignored", "damaged" };
static const char *const kind_names[] = { "none", "v1", "v2" };

static void print_verdict(struct emit *e, const struct btrkit_space_copy *c)
{
	emit_str(e, "verdict", ": ", verdict_names[c->verdict]);
	if (c->verdict == BTRKIT_SPACE_DIFFERENT) {
		emit_u64(e, "at", " from ", c->at);
		emit_text(e, c->free ? ", free there and used in the extent tree" :
				       ", used there and free in the extent tree");
		emit_bool(e, "free", c->free);
	}
	if (c->why)
		emit_str(e, "why", ", ", c->why);
	emit_text(e, "\n");
}

static void print_free(struct emit *e, const struct btrkit_space_copy *c)
{
	if (c->verdict != BTRKIT_SPACE_EQUAL && c->verdict != BTRKIT_SPACE_DIFFERENT)
		return;
	emit_u64(e, "free_bytes", " free ", c->free_bytes);
	emit_u64(e, "free_ranges", " ranges ", c->free_ranges);
}

static void print_v2(struct emit *e, const struct btrkit_space_copy *c)
{
	if (c->verdict == BTRKIT_SPACE_ABSENT)
		return;
	emit_object(e, "v2");
	emit_text(e, "\tv2");
	if (c->verdict != BTRKIT_SPACE_DAMAGED)
		emit_str(e, "form", " ", c->bitmaps ? "bitmaps" : "extents");
	print_free(e, c);
	print_verdict(e, c);
	emit_object_end(e);
}

static void print_v1(struct emit *e, const struct btrkit_space_copy *c)
{
	if (c->verdict == BTRKIT_SPACE_ABSENT)
		return;
	emit_object(e, "v1");
	emit_u64(e, "inode", "\tv1 inode ", c->inode);
	emit_u64(e, "generation", " generation ", c->generation);
	emit_u64(e, "num_entries", " entries ", c->num_entries);
	emit_u64(e, "num_bitmaps", " bitmaps ", c->num_bitmaps);
	emit_u64(e, "file_bytes", " file ", c->file_bytes);
	print_free(e, c);
	print_verdict(e, c);
	emit_object_end(e);
}

static int print_group(void *ctx, const struct btrkit_space_group *g)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_u64(e, "logical", "block group ", g->logical);
	emit_u64(e, "length", " length ", g->length);
	bg_flags_emit(e, "flags", " flags ", g->flags);
	emit_u64(e, "used", " used ", g->used);
	emit_u64(e, "free_bytes", " free ", g->free_bytes);
	emit_u64(e, "free_ranges", " ranges ", g->free_ranges);
	emit_u64(e, "super_bytes", " superblocks ", g->super_bytes);
	emit_text(e, "\n");
	print_v2(e, &g->v2);
	print_v1(e, &g->v1);
	emit_object_end(e);
	return emit_failed(e);
}

static int print_leftover(void *ctx, const struct btrkit_space_leftover *l)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_str(e, "leftover", "leftover of ", kind_names[l->kind]);
	emit_u64(e, "logical", " without block group: at ", l->logical);
	if (l->kind == BTRKIT_SPACE_CACHE_V2)
		emit_u64(e, "length", " length ", l->length);
	else
		emit_u64(e, "inode", " inode ", l->inode);
	emit_text(e, "\n");
	emit_object_end(e);
	return emit_failed(e);
}

static void print_count(struct emit *e, const char *name, const struct btrkit_space_count *c)
{
	emit_object(e, name);
	emit_text(e, name);
	emit_u64(e, "bytes", ":\t\t", c->bytes);
	emit_text(e, " bytes, block groups");
	for (unsigned i = 0; i < sizeof(verdict_names) / sizeof(verdict_names[0]); i++) {
		emit_text(e, i ? ", " : " ");
		emit_u64(e, verdict_names[i], "", c->groups[i]);
		emit_text(e, " ");
		emit_text(e, verdict_names[i]);
	}
	emit_u64(e, "leftovers", ", leftovers ", c->leftovers);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void print_summary(struct emit *e, const struct btrkit_space_summary *s)
{
	emit_object(e, NULL);
	emit_object(e, "summary");
	emit_u64(e, "groups", "block groups:\t", s->groups);
	emit_u64(e, "length", " of ", s->length);
	emit_u64(e, "used", " bytes, ", s->used);
	emit_u64(e, "extents", " used by ", s->extents);
	emit_text(e, " extents\n");
	print_count(e, "v2", &s->v2);
	print_count(e, "v1", &s->v1);
	emit_u64(e, "generation", "generation:\t", s->generation);
	emit_u64(e, "cache_generation", ", of the v1 cache ", s->cache_generation);
	emit_str(e, "in_use", "\nin use:\t\t", kind_names[s->in_use]);
	if (s->in_use != BTRKIT_SPACE_CACHE_NONE) {
		emit_bool(e, "valid", s->valid);
		emit_text(e, s->valid ? ", valid" : ", not valid");
		if (s->why)
			emit_str(e, "why", ": ", s->why);
	}
	emit_u64(e, "contradictions", "\ncontradictions:\t", s->contradictions);
	emit_text(e, "\n");
	emit_object_end(e);
	emit_object_end(e);
}

int print_space_status(struct btrkit_fs *fs, enum btrkit_format format, btrkit_write_fn write, void *ctx,
			      struct btrkit_space_summary *ret, struct btrkit_error *err)
{
	struct emit e;
	const struct btrkit_space_sink sink = { print_group, print_leftover, &e };
	struct btrkit_space_summary sum;
	int r;

	r = list_begin(&e, format, "space-cache status", write, ctx, err);
	if (r)
		return r;
	r = btrkit_space_status(fs, &sink, &sum, err);
	if (!r)
		print_summary(&e, &sum);
	r = list_end(&e, r);
	if (!r && ret)
		*ret = sum;
	return r;
}
