// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints subvolumes like `btrfs subvolume list` and `show`. */
#include "lib/print/subvolumes.h"

#include <btrkit/inspect.h>

#include <string.h>

#include "lib/base/uuid.h"
#include "lib/format/key_names.h"
#include "lib/print/files.h"
#include "lib/base/emit_list.h"

struct job {
	struct emit e;
	enum btrkit_format format;
	btrkit_lost_fn lost;
	void *lost_ctx;
};

/* Prints a UUID, or "-" padded to its width. */
static void print_uuid(struct job *j, const char *words, const uint8_t uuid[16])
{
	emit_text(&j->e, words);
	if (!base_uuid_is_none(uuid))
		emit_uuid(&j->e, "", "", uuid);
	else
		emit_text(&j->e, j->format == BTRKIT_FORMAT_TEXT ? "-                                   " : "-");
}

static void print_path(struct job *j, const struct btrkit_subvolume_item *s, const char *words)
{
	if (s->path)
		emit_name_escaped(&j->e, "path", words, s->path, s->path_len, false);
	else
		emit_str(&j->e, "", words, s->deleted ? "DELETED" : "-");
}

/* Prints the first columns, common to both formats. */
static void print_numbers(struct job *j, const struct btrkit_subvolume_item *s, const char *const words[4])
{
	emit_u64(&j->e, "", words[0], s->id);
	emit_u64(&j->e, "", words[1], s->generation);
	emit_u64(&j->e, "", words[2], s->otransid);
	emit_u64(&j->e, "", words[3], s->parent);
}

static void print_text(struct job *j, const struct btrkit_subvolume_item *s)
{
	static const char *const words[] = { "ID ", " gen ", " cgen ", " parent " };

	print_numbers(j, s, words);
	emit_u64(&j->e, "", " top level ", s->parent);
	print_uuid(j, " parent_uuid ", s->parent_uuid);
	print_uuid(j, " received_uuid ", s->received_uuid);
	print_uuid(j, " uuid ", s->uuid);
	print_path(j, s, " path ");
	emit_text(&j->e, "\n");
}

static void print_tsv(struct job *j, const struct btrkit_subvolume_item *s)
{
	static const char *const words[] = { "", "\t", "\t", "\t" };

	print_numbers(j, s, words);
	emit_s64(&j->e, "", "\t", s->otime.sec);
	emit_x64(&j->e, "", "\t", s->flags);
	print_uuid(j, "\t", s->uuid);
	print_uuid(j, "\t", s->parent_uuid);
	print_uuid(j, "\t", s->received_uuid);
	print_path(j, s, "\t");
	emit_text(&j->e, "\n");
}

static void print_json(struct job *j, const struct btrkit_subvolume_item *s)
{
	static const struct flag_name flags[] = {
		{ BTRKIT_SUBVOLUME_FLAG_READ_ONLY, "RDONLY" },
		{ BTRKIT_SUBVOLUME_FLAG_DEAD, "DEAD" },
		{ 0, NULL },
	};
	struct emit *e = &j->e;

	emit_object(e, NULL);
	emit_u64(e, "id", "", s->id);
	emit_u64(e, "generation", "", s->generation);
	emit_u64(e, "parent", "", s->parent);
	emit_u64(e, "top_level", "", s->parent);
	if (s->path)
		print_path(j, s, "");
	emit_bool(e, "default", s->is_default);
	emit_bool(e, "deleted", s->deleted);
	emit_u64(e, "flags", "", s->flags);
	flags_names_emit(e, "flags_names", flags, s->flags);
	emit_uuid(e, "uuid", "", s->uuid);
	emit_uuid(e, "parent_uuid", "", s->parent_uuid);
	emit_uuid(e, "received_uuid", "", s->received_uuid);
	emit_u64(e, "otransid", "", s->otransid);
	emit_u64(e, "ctransid", "", s->ctransid);
	emit_u64(e, "stransid", "", s->stransid);
	emit_u64(e, "rtransid", "", s->rtransid);
	time_member_emit(e, "otime", &s->otime);
	time_member_emit(e, "ctime", &s->ctime);
	time_member_emit(e, "stime", &s->stime);
	time_member_emit(e, "rtime", &s->rtime);
	emit_u64(e, "last_snapshot", "", s->last_snapshot);
	emit_u64(e, "bytenr", "", s->bytenr);
	emit_u64(e, "level", "", s->level);
	emit_u64(e, "bytes_used", "", s->bytes_used);
	emit_array(e, "snapshots");
	for (size_t i = 0; i < s->num_snapshots; i++)
		emit_u64(e, NULL, "", s->snapshots[i]);
	emit_array_end(e);
	emit_object_end(e);
}

static int print_subvolume(void *ctx, const struct btrkit_subvolume_item *s)
{
	struct job *j = ctx;

	if (j->format == BTRKIT_FORMAT_JSON)
		print_json(j, s);
	else if (j->format == PRINT_FORMAT_TSV)
		print_tsv(j, s);
	else
		print_text(j, s);
	return emit_failed(&j->e);
}

static int lose(void *ctx, const struct btrkit_error *what)
{
	const struct job *j = ctx;

	return j->lost(j->lost_ctx, what);
}

int print_subvolumes(struct btrkit_fs *fs, const struct btrkit_subvolumes_options *opts,
		     enum btrkit_format format, btrkit_lost_fn lost, void *lost_ctx, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err)
{
	struct btrkit_subvolumes_options own = BTRKIT_SUBVOLUMES_OPTIONS_INIT;
	struct job j = { .format = format, .lost = lost, .lost_ctx = lost_ctx };
	int r;

	r = list_begin(&j.e, format == PRINT_FORMAT_TSV ? BTRKIT_FORMAT_TEXT : format, "list-subvolumes", write, ctx,
		       err);
	if (r)
		return r;
	if (opts)
		own = *opts;
	if (format == BTRKIT_FORMAT_JSON)
		own.flags |= BTRKIT_SUBVOLUMES_RELATIONS;
	return list_end(&j.e, btrkit_subvolumes_around(fs, &own, print_subvolume, lost ? lose : NULL, &j,
						      err));
}
