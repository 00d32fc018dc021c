// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints space usage by owner as an HTML page. The page is built from html/; it contains the data as JSON, which its
 * scripts read. 64-bit numbers are strings, because JavaScript numbers have only 53 bits.
 */
#include "lib/print/usage_html.h"

#include <btrkit/inspect.h>
#include <btrkit/subvolume.h>
#include <btrkit/usage.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/uuid.h"
#include "lib/print/usage_page.h"
#include "lib/print/usage_impl.h"

#define NUMBER_BYTES 21		       /* a 64-bit number in decimal and a null byte */
#define SPACE_BYTES (5 * NUMBER_BYTES) /* amounts as in the page, separated by blanks */

/* State of the output. */
struct page {
	btrkit_write_fn write;
	void *ctx;
	struct usage_printer_options opts;
	uint64_t damaged;
	struct usage_printer *printer;
	const struct btrkit_usage_paths *paths; /* may be NULL */
	struct btrkit_subvolume_deletion *holds; /* sorted by id, like the subvolumes among the owners */
	size_t num_holds;
	struct btrkit_usage_run *runs; /* of one set */
};

/*
 * The browser looks for the end of the element with the data, which begins with '<'. In JSON this can only occur inside
 * of strings, so it is escaped.
 */
static int write_data(void *ctx, const void *data, size_t len)
{
	static const char escape[] = "\\u003c";
	const struct page *page = ctx;
	const char *at = data, *end = at + len;
	int ret = 0;

	while (at < end && !ret) {
		const char *found = memchr(at, '<', (size_t)(end - at));
		const char *stop = found ? found : end;

		if (stop > at)
			ret = page->write(page->ctx, at, (size_t)(stop - at));
		if (!ret && found)
			ret = page->write(page->ctx, escape, sizeof(escape) - 1);
		at = found ? found + 1 : end;
	}
	return ret;
}

static int count_damage(void *ctx, const struct btrkit_error *what)
{
	struct page *page = ctx;

	page->damaged++;
	return page->opts.damage(page->opts.damage_ctx, what);
}

static void put_number(struct emit *e, const char *key, uint64_t v)
{
	char text[NUMBER_BYTES];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	emit_str(e, key, "", text);
}

static void put_space(struct emit *e, const char *key, const struct btrkit_usage_space *s)
{
	char text[SPACE_BYTES];

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, s->data,
		 s->uncompressed, s->metadata, s->extents, s->blocks);
	emit_str(e, key, "", text);
}

static int compare_ids(const void *a, const void *b)
{
	const struct btrkit_subvolume_deletion *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static const struct btrkit_subvolume_deletion *find_hold(const struct page *page, uint64_t id)
{
	const struct btrkit_subvolume_deletion key = { .id = id };

	return bsearch(&key, page->holds, page->num_holds, sizeof(key), compare_ids);
}

static void put_hold(const struct page *page, struct emit *e, uint64_t id)
{
	const struct btrkit_subvolume_deletion *h = find_hold(page, id);

	/* Whether a nested subvolume stays depends on the selection, so the page determines that itself. */
	if (!h || h->hold == BTRKIT_SUBVOLUME_DELETABLE ||
	    (h->hold == BTRKIT_SUBVOLUME_HOLDS && find_hold(page, h->other)))
		return;
	emit_str(e, "hold", "", usage_hold_names[h->hold]);
	if (h->other)
		put_number(e, "other", h->other);
}

/* Prints the properties of a subvolume. */
static int put_subvolume(struct page *page, const struct label *l, struct btrkit_error *err)
{
	struct usage_printer *p = page->printer;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct emit *e = &p->emit;
	struct btrkit_subvolume_item s;
	int r;

	r = usage_find_path(p, l, err);
	if (r)
		return r;
	usage_emit_path(p, "");
	put_hold(page, e, l->id);
	r = btrkit_subvolume_get(p->fs, l->id, &s, &what);
	if (r)
		return usage_tell_damage(p, r, &what, err);
	if (s.parent)
		put_number(e, "parent", s.parent);
	emit_s64(e, "created", "", s.otime.sec);
	emit_bool(e, "read_only", s.read_only);
	emit_bool(e, "snapshot", !base_uuid_is_none(s.parent_uuid));
	return 0;
}

static int put_owners(struct page *page, struct btrkit_error *err)
{
	struct usage_printer *p = page->printer;
	struct emit *e = &p->emit;

	emit_array(e, "owners");
	for (size_t i = 0; i < p->num_owners && !emit_failed(e); i++) {
		const struct label *l = &p->labels[i];
		struct btrkit_usage_owner o;
		int r = 0;

		btrkit_usage_get_owner(p->usage, i, &o);
		emit_object(e, NULL);
		emit_str(e, "kind", "", usage_kind_names[l->kind]);
		if (l->kind <= BTRKIT_USAGE_RELOCATION)
			put_number(e, "id", l->id);
		if (l->kind == BTRKIT_USAGE_SUBVOLUME)
			r = put_subvolume(page, l, err);
		if (r)
			return r;
		put_space(e, "referenced", &o.referenced);
		put_space(e, "exclusive", &o.exclusive);
		put_space(e, "log", &o.log);
		put_number(e, "orphans", o.orphans);
		emit_object_end(e);
	}
	emit_array_end(e);
	return 0;
}

/*
 * Each set is its space followed by its runs of owners. Owners are numbered by their place in sets, which results in
 * few runs. A run is its distance from the end of the previous run, and its length.
 */
static int put_sets(struct page *page, struct btrkit_error *err)
{
	struct usage_printer *p = page->printer;
	const size_t n = btrkit_usage_num_sets(p->usage);
	struct emit *e = &p->emit;

	/* Runs are apart, so there are fewer than owners. */
	page->runs = calloc(p->num_owners + 1, sizeof(*page->runs));
	if (!page->runs)
		return err_nomem(err);
	emit_array(e, "order");
	for (size_t i = 0; i < p->num_owners; i++)
		emit_u64(e, NULL, "", btrkit_usage_in_order(p->usage, i));
	emit_array_end(e);
	emit_array(e, "sets");
	for (size_t i = 0; i < n && !emit_failed(e); i++) {
		const size_t num_runs = btrkit_usage_get_runs(p->usage, i, page->runs, p->num_owners);
		struct btrkit_usage_set s;
		uint32_t at = 0;

		btrkit_usage_get_set(p->usage, i, &s, NULL, 0);
		emit_array(e, NULL);
		put_space(e, NULL, &s.space);
		for (size_t run = 0; run < num_runs; run++) {
			emit_u64(e, NULL, "", page->runs[run].first - at);
			emit_u64(e, NULL, "", page->runs[run].last - page->runs[run].first + 1);
			at = page->runs[run].last + 1;
		}
		emit_array_end(e);
	}
	emit_array_end(e);
	return 0;
}

static int put_data(struct page *page, struct btrkit_error *err)
{
	struct usage_printer *p = page->printer;
	struct emit *e = &p->emit;
	struct btrkit_usage_total total;
	struct btrkit_fs_info info;
	int r;

	/* What prevents deletion if all subvolumes were to be deleted: reasons that do not depend on the selection. */
	r = usage_find_holds(p, NULL, p->num_owners, &page->holds, &page->num_holds, err);
	if (r)
		return r;
	btrkit_usage_get_total(p->usage, &total);
	btrkit_fs_get_info(p->fs, &info);
	emit_object(e, NULL);
	emit_u64(e, "version", "", 1);
	emit_uuid(e, "fsid", "", info.fsid);
	emit_name(e, "label", "", info.label, strlen(info.label));
	put_number(e, "generation", info.generation);
	put_space(e, "total", &total.space);
	put_space(e, "unowned", &total.unowned);
	r = put_owners(page, err);
	if (r)
		return r;
	r = put_sets(page, err);
	if (!r && page->paths)
		r = usage_html_put_paths(e, page->paths, err);
	if (r)
		return r;
	/* At the end, because there may be more damage by now. */
	put_number(e, "damaged", total.damaged + page->damaged);
	emit_object_end(e);
	return emit_flush(e);
}

int print_usage_html(struct btrkit_fs *fs, const struct btrkit_usage *u, const struct btrkit_usage_paths *paths,
			    const struct usage_printer_options *opts, btrkit_write_fn write, void *ctx,
			    struct btrkit_error *err)
{
	struct usage_printer_options own = { .format = BTRKIT_FORMAT_JSON };
	struct page page = { .write = write, .ctx = ctx, .paths = paths };
	int ret, ended;

	if (opts)
		page.opts = *opts;
	if (page.opts.flags || page.opts.format)
		return err_set(err, BTRKIT_INVALID, "flags and format are not supported for HTML");
	if (page.opts.damage) {
		own.damage = count_damage;
		own.damage_ctx = &page;
	}
	ret = usage_printer_create(fs, u, &own, write_data, &page, &page.printer, err);
	if (!ret)
		ret = write(ctx, usage_html_head, usage_html_head_size);
	if (!ret)
		ret = put_data(&page, err);
	if (ret && page.printer)
		emit_abandon(&page.printer->emit);
	ended = usage_printer_finish(page.printer);
	free(page.holds);
	free(page.runs);
	if (!ret)
		ret = ended;
	return ret ? ret : write(ctx, usage_html_tail, usage_html_tail_size);
}
