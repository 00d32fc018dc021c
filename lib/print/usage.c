// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints space usage by owner as text, tab-separated values or JSON Lines. */
#include "lib/print/usage.h"

#include <btrkit/usage.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <btrkit/subvolume.h>

#include "lib/base/digits.h"
#include "lib/base/err.h"
#include "lib/print/usage_impl.h"

const char *const usage_kind_names[] = { "subvolume", "dying", "relocation", "data-relocation", "filesystem" };

struct emit *usage_print_begin(struct usage_printer *p)
{
	if (!p->begun)
		emit_header(&p->emit, "du");
	p->begun = true;
	return &p->emit;
}

static struct btrkit_usage_space minus(const struct btrkit_usage_space *a, const struct btrkit_usage_space *b)
{
	return (struct btrkit_usage_space){ a->data - b->data, a->uncompressed - b->uncompressed,
					    a->metadata - b->metadata, a->extents - b->extents, a->blocks - b->blocks };
}

static void add(struct btrkit_usage_space *to, const struct btrkit_usage_space *s)
{
	to->data += s->data;
	to->uncompressed += s->uncompressed;
	to->metadata += s->metadata;
	to->extents += s->extents;
	to->blocks += s->blocks;
}

const char *usage_size_text(const struct usage_printer *p, uint64_t bytes, char to[SIZE_BYTES])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double size = (double)bytes;
	unsigned unit = 0;

	if (p->opts.flags & USAGE_PRINTER_BYTES) {
		snprintf(to, SIZE_BYTES, "%" PRIu64, bytes);
		return to;
	}
	for (; size >= 1024; size /= 1024)
		unit++;
	snprintf(to, SIZE_BYTES, unit ? "%.2f%s" : "%.0f%s", size, units[unit]);
	return to;
}

void usage_emit_size(struct usage_printer *p, const char *words, uint64_t bytes)
{
	char size[SIZE_BYTES];

	emit_text(&p->emit, words);
	emit_text(&p->emit, usage_size_text(p, bytes, size));
}

static void emit_size_wide(struct usage_printer *p, uint64_t bytes)
{
	char size[SIZE_BYTES];

	emit_textf(&p->emit, "  %*s", p->width, usage_size_text(p, bytes, size));
}

const char *usage_label_text(const struct label *l, char to[LABEL_BYTES])
{
	if (l->kind == BTRKIT_USAGE_SUBVOLUME || l->kind == BTRKIT_USAGE_DROPPED)
		snprintf(to, LABEL_BYTES, "%" PRIu64, l->id);
	else if (l->kind == BTRKIT_USAGE_RELOCATION)
		snprintf(to, LABEL_BYTES, "%s:%" PRIu64, usage_kind_names[l->kind], l->id);
	else
		snprintf(to, LABEL_BYTES, "%s", usage_kind_names[l->kind]);
	return to;
}

void usage_emit_label(struct emit *e, const char *key, const char *words, const struct label *l)
{
	char text[LABEL_BYTES];

	if (l->kind == BTRKIT_USAGE_SUBVOLUME || l->kind == BTRKIT_USAGE_DROPPED)
		emit_u64(e, key, words, l->id);
	else
		emit_str(e, key, words, usage_label_text(l, text));
}

void usage_emit_labels(struct usage_printer *p, const char *key, const char *words, const uint32_t *owners,
		       size_t n)
{
	emit_array(&p->emit, key);
	for (size_t i = 0; i < n; i++)
		usage_emit_label(&p->emit, NULL, i ? "," : words, &p->labels[owners[i]]);
	if (!n)
		emit_text(&p->emit, words);
	emit_array_end(&p->emit);
}

static int keep_path(void *ctx, const char *path, size_t len)
{
	struct usage_printer *p = ctx;
	char *kept = malloc(len + 1);

	if (!kept)
		return -ENOMEM;
	*kept = '/';
	memcpy(kept + 1, path, len);
	free(p->path);
	p->path = kept;
	p->path_len = len + 1;
	return 0;
}

int usage_tell_damage(struct usage_printer *p, int ret, const struct btrkit_error *what,
		      struct btrkit_error *err)
{
	if (p->opts.damage && ret != -ENOMEM)
		return p->opts.damage(p->opts.damage_ctx, what);
	if (err)
		*err = *what;
	return ret;
}

int usage_find_path(struct usage_printer *p, const struct label *l, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char name[40];
	int r;

	p->path_len = 0;
	if (l->kind != BTRKIT_USAGE_SUBVOLUME)
		return 0;
	r = btrkit_subvolume_path(p->fs, l->id, keep_path, p, &what);
	if (r == -ENOMEM)
		return err_nomem(err);
	/* Report a damaged block once, not for every subvolume whose path needs it. */
	if (!r || btrkit_usage_was_reported(p->usage, &what))
		return 0;
	snprintf(name, sizeof(name), "path of %" PRIu64, l->id);
	err_name(&what, name);
	return usage_tell_damage(p, r, &what, err);
}

void usage_emit_path(struct usage_printer *p, const char *words)
{
	if (p->path_len)
		emit_name_escaped(&p->emit, "path", words, p->path, p->path_len, false);
	else
		emit_text(&p->emit, words);
}

int usage_printer_create(struct btrkit_fs *fs, const struct btrkit_usage *u,
				const struct usage_printer_options *opts, btrkit_write_fn write, void *ctx,
				struct usage_printer **ret, struct btrkit_error *err)
{
	static const struct usage_printer_options defaults = USAGE_PRINTER_OPTIONS_INIT;
	const size_t n = btrkit_usage_num_owners(u);
	struct usage_printer *p;
	struct btrkit_usage_total total;

	if (!opts)
		opts = &defaults;
	if (opts->flags & ~(unsigned)USAGE_PRINTER_BYTES || (unsigned)opts->format > PRINT_FORMAT_TSV)
		return err_set(err, BTRKIT_INVALID, "unknown flags or format");
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err);
	p->labels = calloc(n + 1, sizeof(*p->labels));
	p->members = calloc(n + 1, sizeof(*p->members));
	if (emit_init(&p->emit, opts->format == BTRKIT_FORMAT_JSON ? EMIT_JSON : EMIT_TEXT, write, ctx) || !p->labels ||
	    !p->members) {
		(void)usage_printer_finish(p);
		return err_nomem(err);
	}
	p->fs = fs;
	p->usage = u;
	p->opts = *opts;
	p->num_owners = n;
	p->set = SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		struct btrkit_usage_owner o;

		btrkit_usage_get_owner(u, i, &o);
		p->labels[i] = (struct label){ o.kind, o.id };
	}
	btrkit_usage_get_total(u, &total);
	p->width = 10;
	if (opts->flags & USAGE_PRINTER_BYTES && digits_count(total.space.uncompressed) > 10)
		p->width = (int)digits_count(total.space.uncompressed);
	*ret = p;
	return 0;
}

int usage_printer_finish(struct usage_printer *p)
{
	int ret;

	if (!p)
		return 0;
	ret = emit_finish(&p->emit);
	free(p->labels);
	free(p->members);
	free(p->path);
	free(p);
	return ret;
}

/* Owners and totals. */

void usage_emit_space(struct emit *e, const char *words, const struct btrkit_usage_space *s)
{
	emit_u64(e, "data", words, s->data);
	emit_u64(e, "uncompressed", words, s->uncompressed);
	emit_u64(e, "metadata", words, s->metadata);
	emit_u64(e, "extents", words, s->extents);
	emit_u64(e, "blocks", words, s->blocks);
}

static void json_space(struct emit *e, const char *key, const struct btrkit_usage_space *s)
{
	emit_object(e, key);
	usage_emit_space(e, "", s);
	emit_object_end(e);
}

/* A row of the table: referenced in total, by one owner only, by several owners. */
struct amounts {
	struct btrkit_usage_space all, exclusive, shared;
};

static void tsv_amounts(struct emit *e, const struct amounts *a)
{
	const uint64_t columns[] = {
		a->all.data,	     a->exclusive.data,		a->shared.data,
		a->all.uncompressed, a->exclusive.uncompressed, a->shared.uncompressed,
		a->all.metadata,     a->exclusive.metadata,	a->shared.metadata,
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		emit_u64(e, NULL, "\t", columns[i]);
}

static void text_amounts(struct usage_printer *p, const struct amounts *a)
{
	const struct btrkit_usage_space *const s[] = { &a->all, &a->exclusive, &a->shared };

	for (size_t i = 0; i < 3; i++)
		emit_size_wide(p, s[i]->data);
	for (size_t i = 0; i < 3; i++)
		emit_size_wide(p, s[i]->uncompressed);
	for (size_t i = 0; i < 3; i++)
		emit_size_wide(p, s[i]->metadata);
}

static void text_head(struct usage_printer *p)
{
	static const char *const groups[] = { "data on disk", "data uncompressed", "metadata" };
	static const char *const columns[] = { "referenced", "exclusive", "shared" };
	struct emit *e = &p->emit;

	emit_textf(e, "%8s", "");
	for (size_t i = 0; i < 3; i++)
		emit_textf(e, "  %-*s", i < 2 ? 3 * p->width + 4 : 0, groups[i]);
	emit_textf(e, "\n%8s", "id");
	for (size_t i = 0; i < 9; i++)
		emit_textf(e, "  %*s", p->width, columns[i % 3]);
	emit_text(e, "  path\n");
}

/* Prints the kind of an owner without a path. */
static void text_kind(struct emit *e, const struct label *l)
{
	switch (l->kind) {
	case BTRKIT_USAGE_SUBVOLUME:
		emit_text(e, "  (no path)");
		break;
	case BTRKIT_USAGE_DROPPED:
		emit_text(e, "  (being deleted)");
		break;
	case BTRKIT_USAGE_RELOCATION:
		emit_u64(e, NULL, "  (relocation of subvolume ", l->id);
		emit_text(e, ")");
		break;
	case BTRKIT_USAGE_DATA_RELOCATION:
		emit_text(e, "  (relocation of data)");
		break;
	default:
		emit_text(e, "  (the filesystem itself)");
	}
}

static void text_owner(struct usage_printer *p, const struct btrkit_usage_owner *o, const struct label *l,
		       const struct amounts *a)
{
	struct emit *e = &p->emit;

	if (l->kind == BTRKIT_USAGE_SUBVOLUME || l->kind == BTRKIT_USAGE_DROPPED)
		emit_u64_wide(e, NULL, "", l->id, 8);
	else
		emit_textf(e, "%8s", "-");
	text_amounts(p, a);
	if (p->path_len)
		usage_emit_path(p, "  ");
	else
		text_kind(e, l);
	if (o->log.data || o->log.metadata) {
		usage_emit_size(p, ", in its log ", o->log.data);
		usage_emit_size(p, " of data and ", o->log.metadata);
		emit_text(e, " of metadata besides");
	}
	if (o->orphans)
		emit_u64(e, NULL, ", files without a name: ", o->orphans);
	emit_text(e, "\n");
}

/* Whether an owner is a subvolume, or belongs to one, so that its id is a subvolume number. */
static bool has_number(const struct btrkit_usage_owner *o)
{
	return o->kind <= BTRKIT_USAGE_RELOCATION;
}

static void tsv_owner(struct usage_printer *p, const struct btrkit_usage_owner *o, const struct amounts *a)
{
	struct emit *e = &p->emit;

	emit_text(e, usage_kind_names[o->kind]);
	emit_u64(e, NULL, "\t", has_number(o) ? o->id : 0);
	tsv_amounts(e, a);
	emit_u64(e, NULL, "\t", o->log.data);
	emit_u64(e, NULL, "\t", o->log.metadata);
	emit_u64(e, NULL, "\t", o->orphans);
	usage_emit_path(p, "\t");
	emit_text(e, "\n");
}

static void json_owner(struct usage_printer *p, const struct btrkit_usage_owner *o, const struct amounts *a)
{
	struct emit *e = &p->emit;

	emit_object(e, NULL);
	emit_str(e, "owner", "", usage_kind_names[o->kind]);
	if (has_number(o))
		emit_u64(e, "id", "", o->id);
	usage_emit_path(p, "");
	json_space(e, "referenced", &a->all);
	json_space(e, "exclusive", &a->exclusive);
	json_space(e, "shared", &a->shared);
	json_space(e, "log", &o->log);
	emit_u64(e, "orphans", "", o->orphans);
	emit_object_end(e);
}

static void print_sum(struct usage_printer *p, const char *name, const char *words, const struct amounts *a)
{
	struct emit *e = &p->emit;

	switch ((unsigned)p->opts.format) {
	case BTRKIT_FORMAT_TEXT:
		emit_textf(e, "%8s", name);
		text_amounts(p, a);
		emit_text(e, words);
		break;
	case PRINT_FORMAT_TSV:
		emit_text(e, name);
		emit_text(e, "\t0");
		tsv_amounts(e, a);
		emit_text(e, "\t0\t0\t0\t\n");
		break;
	case BTRKIT_FORMAT_JSON:
		emit_object(e, NULL);
		emit_object(e, name);
		json_space(e, "referenced", &a->all);
		json_space(e, "exclusive", &a->exclusive);
		json_space(e, "shared", &a->shared);
		emit_object_end(e);
		emit_object_end(e);
	}
}

int usage_printer_owners(struct usage_printer *p, struct btrkit_error *err)
{
	struct emit *e = usage_print_begin(p);
	struct amounts sum = { 0 }, none = { 0 };
	struct btrkit_usage_total total;

	if (p->opts.format == BTRKIT_FORMAT_TEXT)
		text_head(p);
	for (size_t i = 0; i < p->num_owners && !emit_failed(e); i++) {
		struct btrkit_usage_owner o;
		struct amounts a;
		int r = usage_find_path(p, &p->labels[i], err);

		if (r)
			return r;
		btrkit_usage_get_owner(p->usage, i, &o);
		a = (struct amounts){ o.referenced, o.exclusive, minus(&o.referenced, &o.exclusive) };
		add(&sum.exclusive, &o.exclusive);
		if (p->opts.format == BTRKIT_FORMAT_TEXT)
			text_owner(p, &o, &p->labels[i], &a);
		else if (p->opts.format == PRINT_FORMAT_TSV)
			tsv_owner(p, &o, &a);
		else
			json_owner(p, &o, &a);
	}
	btrkit_usage_get_total(p->usage, &total);
	none.all = total.unowned;
	sum.all = minus(&total.space, &total.unowned);
	sum.shared = minus(&sum.all, &sum.exclusive);
	if (total.unowned.data || total.unowned.metadata)
		print_sum(p, "unowned", "  (not referenced)\n", &none);
	print_sum(p, "total", "\n", &sum);
	return emit_failed(e);
}
