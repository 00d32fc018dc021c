// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints freed space, shared space of pairs, compression types, and extents. */
#include <btrkit/subvolume.h>
#include <btrkit/usage.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/print/usage_impl.h"

/* Space freed by deleting subvolumes. */

const char *const usage_hold_names[] = { NULL, "top-level", "default", "in-read-only", "nowhere", "holds" };
static const char *const hold_words[] = {
	NULL,
	"it is the top level",
	"it is the default subvolume",
	"it is in a read-only subvolume, ",
	"it is not in any directory",
	"it contains a subvolume that is not deleted, ",
};

int usage_find_holds(struct usage_printer *p, const uint32_t *owners, size_t n,
		     struct btrkit_subvolume_deletion **holds, size_t *num_holds, struct btrkit_error *err)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int r;

	*num_holds = 0;
	*holds = calloc(n + 1, sizeof(**holds));
	if (!*holds)
		return err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		const struct label *l = &p->labels[owners ? owners[i] : i];

		if (l->kind == BTRKIT_USAGE_SUBVOLUME)
			(*holds)[(*num_holds)++].id = l->id;
	}
	r = btrkit_subvolumes_deletable(p->fs, *holds, *num_holds, &what);
	if (!r)
		return 0;
	*num_holds = 0;
	return usage_tell_damage(p, r, &what, err);
}

static void print_hold(struct usage_printer *p, const char *words, const struct btrkit_subvolume_deletion *h)
{
	struct emit *e = &p->emit;

	emit_object(e, NULL);
	emit_text(e, words);
	emit_u64(e, "id", "", h->id);
	if (p->opts.format == BTRKIT_FORMAT_TEXT)
		emit_str(e, NULL, ": ", hold_words[h->hold]);
	else
		emit_str(e, "hold", "\t", usage_hold_names[h->hold]);
	if (h->other || p->opts.format == PRINT_FORMAT_TSV)
		emit_u64(e, "other", p->opts.format == PRINT_FORMAT_TSV ? "\t" : "", h->other);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void print_holds(struct usage_printer *p, const uint32_t *owners, size_t n,
			const struct btrkit_subvolume_deletion *holds, size_t num_holds)
{
	struct emit *e = &p->emit;

	emit_array(e, "held");
	for (size_t i = 0; i < num_holds; i++) {
		if (holds[i].hold == BTRKIT_SUBVOLUME_DELETABLE)
			continue;
		if (p->opts.format == PRINT_FORMAT_TSV) {
			usage_emit_labels(p, NULL, "held\t", owners, n);
			print_hold(p, "\t", &holds[i]);
		} else {
			print_hold(p, "\tLinux does not delete ", &holds[i]);
		}
	}
	emit_array_end(e);
}

static void print_freed(struct usage_printer *p, const uint32_t *owners, size_t n,
			const struct btrkit_usage_space *s)
{
	struct emit *e = &p->emit;

	if (p->opts.format == BTRKIT_FORMAT_TEXT) {
		usage_emit_labels(p, NULL, "deleting ", owners, n);
		usage_emit_size(p, " frees ", s->data + s->metadata);
		usage_emit_size(p, ": data ", s->data);
		usage_emit_size(p, " (uncompressed ", s->uncompressed);
		emit_u64(e, NULL, ") in ", s->extents);
		usage_emit_size(p, " extents, metadata ", s->metadata);
		emit_u64(e, NULL, " in ", s->blocks);
		emit_text(e, " blocks\n");
		return;
	}
	usage_emit_labels(p, "freed_by", "freed\t", owners, n);
	emit_u64(e, "freed_data", "\t", s->data);
	emit_u64(e, "freed_uncompressed", "\t", s->uncompressed);
	emit_u64(e, "freed_metadata", "\t", s->metadata);
	emit_u64(e, "freed_extents", "\t", s->extents);
	emit_u64(e, "freed_blocks", "\t", s->blocks);
	emit_text(e, "\n");
}

int usage_printer_freed(struct usage_printer *p, const uint32_t *owners, size_t n,
			       struct btrkit_error *err)
{
	struct btrkit_subvolume_deletion *holds;
	struct btrkit_usage_space space;
	size_t num_holds;
	int r;

	r = btrkit_usage_freed(p->usage, owners, n, &space, err);
	if (r)
		return r;
	r = usage_find_holds(p, owners, n, &holds, &num_holds, err);
	if (!r) {
		emit_object(usage_print_begin(p), NULL);
		print_freed(p, owners, n, &space);
		print_holds(p, owners, n, holds, num_holds);
		emit_object_end(&p->emit);
		r = emit_failed(&p->emit);
	}
	free(holds);
	return r;
}

/* Space shared by each pair of owners. */

static void text_matrix(struct usage_printer *p, const struct btrkit_usage_space *m)
{
	struct emit *e = &p->emit;
	char label[LABEL_BYTES];
	int width = p->width, left = 8;

	for (size_t i = 0; i < p->num_owners; i++) {
		int len = (int)strlen(usage_label_text(&p->labels[i], label));

		left = len > left ? len : left;
		width = len > width ? len : width;
	}
	emit_textf(e, "%*s", left, "");
	for (size_t i = 0; i < p->num_owners; i++)
		emit_textf(e, "  %*s", width, usage_label_text(&p->labels[i], label));
	emit_text(e, "\n");
	for (size_t i = 0; i < p->num_owners && !emit_failed(e); i++) {
		emit_textf(e, "%*s", left, usage_label_text(&p->labels[i], label));
		for (size_t j = 0; j < p->num_owners; j++, m++) {
			char size[SIZE_BYTES];

			emit_textf(e, "  %*s", width, usage_size_text(p, m->data + m->metadata, size));
		}
		emit_text(e, "\n");
	}
}

static void print_pair(struct usage_printer *p, const uint32_t pair[2], const struct btrkit_usage_space *s)
{
	struct emit *e = &p->emit;

	emit_object(e, NULL);
	emit_array(e, "pair");
	usage_emit_label(e, NULL, "pair\t", &p->labels[pair[0]]);
	usage_emit_label(e, NULL, "\t", &p->labels[pair[1]]);
	emit_array_end(e);
	usage_emit_space(e, "\t", s);
	emit_text(e, "\n");
	emit_object_end(e);
}

int usage_printer_matrix(struct usage_printer *p, struct btrkit_error *err)
{
	const size_t n = p->num_owners;
	struct btrkit_usage_space *m = reallocarray(NULL, n ? n : 1, (n ? n : 1) * sizeof(*m));
	struct emit *e;
	int r;

	if (!m)
		return err_nomem(err);
	r = btrkit_usage_matrix(p->usage, m, err);
	if (r) {
		free(m);
		return r;
	}
	e = usage_print_begin(p);
	if (p->opts.format == BTRKIT_FORMAT_TEXT) {
		text_matrix(p, m);
	} else {
		for (uint32_t i = 0; i < n && !emit_failed(e); i++) {
			for (uint32_t j = i + 1; j < n; j++) {
				const struct btrkit_usage_space *s = &m[i * n + j];

				if (s->data || s->metadata)
					print_pair(p, (const uint32_t[]){ i, j }, s);
			}
		}
	}
	free(m);
	return emit_failed(e);
}

/* Compression types. */

static const char *const type_names[] = { "none", "zlib", "lzo", "zstd", "prealloc" };

static void text_type(struct usage_printer *p, const char *name, const struct btrkit_usage_stored *s)
{
	const uint64_t sizes[] = { s->disk, s->uncompressed, s->referenced };
	struct emit *e = &p->emit;

	emit_textf(e, "%-12s  %5.0f%%", name,
		   s->uncompressed ? 100.0 * (double)s->disk / (double)s->uncompressed : 100);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char size[SIZE_BYTES];

		emit_textf(e, "  %*s", p->width, usage_size_text(p, sizes[i], size));
	}
	emit_u64_wide(e, NULL, "  ", s->extents, 10);
	emit_text(e, "\n");
}

static void print_type(struct usage_printer *p, const char *name, const struct btrkit_usage_stored *s)
{
	struct emit *e = &p->emit;

	if (p->opts.format == BTRKIT_FORMAT_TEXT) {
		text_type(p, name, s);
		return;
	}
	emit_object(e, NULL);
	emit_str(e, "type", "type\t", name);
	emit_u64(e, "disk", "\t", s->disk);
	emit_u64(e, "uncompressed", "\t", s->uncompressed);
	emit_u64(e, "referenced", "\t", s->referenced);
	emit_u64(e, "extents", "\t", s->extents);
	emit_text(e, "\n");
	emit_object_end(e);
}

static void print_stored(struct usage_printer *p, const char *before, const struct btrkit_usage_stored *s,
			 struct btrkit_usage_stored *sum)
{
	char name[32];

	for (size_t i = 0; i < BTRKIT_USAGE_NUM_TYPES; i++) {
		if (!s[i].extents && !s[i].referenced)
			continue;
		snprintf(name, sizeof(name), "%s%s", before, type_names[i]);
		print_type(p, name, &s[i]);
		sum->extents += s[i].extents;
		sum->disk += s[i].disk;
		sum->uncompressed += s[i].uncompressed;
		sum->referenced += s[i].referenced;
	}
}

int usage_printer_types(struct usage_printer *p)
{
	struct emit *e = usage_print_begin(p);
	struct btrkit_usage_stored sum = { 0 };
	struct btrkit_usage_types types;

	btrkit_usage_get_types(p->usage, &types);
	if (p->opts.format == BTRKIT_FORMAT_TEXT)
		emit_textf(e, "%-12s  %6s  %*s  %*s  %*s  %10s\n", "type", "ratio", p->width, "disk", p->width,
			   "uncompressed", p->width, "referenced", "extents");
	print_stored(p, "", types.extents, &sum);
	print_stored(p, "inline-", types.inlined, &sum);
	print_type(p, "total", &sum);
	return emit_failed(e);
}

/* Extents. */

/* Neighbouring extents often have the same owners. */
static void find_members(struct usage_printer *p, size_t set)
{
	struct btrkit_usage_set s = { .num_owners = 0 };

	if (set == p->set)
		return;
	if (set != SIZE_MAX)
		btrkit_usage_get_set(p->usage, set, &s, p->members, p->num_owners);
	p->set = set;
	p->num_members = s.num_owners;
}

int usage_printer_extents(struct usage_printer *p)
{
	const bool text = p->opts.format == BTRKIT_FORMAT_TEXT;
	const size_t n = btrkit_usage_num_extents(p->usage);
	struct emit *e = usage_print_begin(p);

	if (text)
		emit_textf(e, "%15s  %*s  %*s  %-8s  %s\n", "address", p->width, "disk", p->width, "uncompressed",
			   "type", "owners");
	for (size_t i = 0; i < n && !emit_failed(e); i++) {
		struct btrkit_usage_extent x;

		btrkit_usage_get_extent(p->usage, i, &x);
		find_members(p, x.set);
		emit_object(e, NULL);
		if (text) {
			char disk[SIZE_BYTES], whole[SIZE_BYTES];

			emit_u64_wide(e, NULL, "", x.bytenr, 15);
			emit_textf(e, "  %*s  %*s  %-8s", p->width, usage_size_text(p, x.bytes, disk), p->width,
				   usage_size_text(p, x.uncompressed, whole), type_names[x.type]);
		} else {
			emit_u64(e, "bytenr", "extent\t", x.bytenr);
			emit_u64(e, "bytes", "\t", x.bytes);
			emit_u64(e, "uncompressed", "\t", x.uncompressed);
			emit_str(e, "type", "\t", type_names[x.type]);
			emit_bool(e, "linux_shared", x.linux_shared);
			emit_text(e, x.linux_shared ? "\tshared" : "\t-");
		}
		usage_emit_labels(p, "owners", text ? "  " : "\t", p->members, p->num_members);
		emit_text(e, "\n");
		emit_object_end(e);
	}
	return emit_failed(e);
}
