// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints the findings of a check as text or JSON Lines. */
#include "lib/print/check.h"

#include <btrkit/check.h>

#include <inttypes.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/format/key_names.h"
#include "lib/base/emit_list.h"
#include "lib/print/next_step.h"

static void emit_code(struct emit *e, const char *kind, const struct btrkit_check_code *code)
{
	emit_word(e, "kind", kind);
	emit_str(e, "code", "", code->name);
	emit_str(e, "severity", " ", btrkit_check_severity_name(code->severity));
}

/* The locations that are in the line of btrkit_error_format(), as separate members. */
static void emit_places(struct emit *e, const struct btrkit_error *what)
{
	if (what->places & BTRKIT_AT_TREE)
		emit_u64(e, "tree", "", what->tree);
	if (what->places & BTRKIT_AT_LOGICAL)
		emit_u64(e, "logical", "", what->logical);
	if (what->places & BTRKIT_AT_DEVID)
		emit_u64(e, "devid", "", what->devid);
	if (what->places & BTRKIT_AT_PHYSICAL)
		emit_u64(e, "physical", "", what->physical);
	if (what->places & BTRKIT_AT_SLOT)
		emit_u64(e, "slot", "", what->slot);
	if (what->places & BTRKIT_AT_KEY)
		key_emit(e, "key", "", &what->key);
	if (what->cause)
		emit_word(e, "cause", btrkit_cause_name(what->cause));
	if (what->field[0])
		emit_name(e, "field", "", what->field, strlen(what->field));
	if (what->copies[0])
		emit_name(e, "copies", "", what->copies, strlen(what->copies));
}

static void emit_what(struct emit *e, const struct btrkit_error *what)
{
	char line[BTRKIT_ERROR_LINE];

	if (e->form == EMIT_JSON) {
		emit_name(e, "message", "", what->message, strlen(what->message));
		emit_places(e, what);
	} else {
		btrkit_error_format(what, line, sizeof(line));
		emit_name_escaped(e, NULL, ": ", line, strlen(line), false);
	}
}

/* What can be done about a device. */
static void emit_step(struct emit *e, enum btrkit_cause cause, uint64_t unmirrored)
{
	char text[256] = "";

	if (cause == BTRKIT_CAUSE_DEVICE_MISSING)
		emit_text(e, "; give it with --device");
	else if (cause == BTRKIT_CAUSE_DEVICE_STALE)
		print_stale_step(unmirrored, text, sizeof(text));
	emit_text(e, text);
}

struct printing {
	struct emit e;
	bool folded;	/* what repeats is told once */
};

static int print_finding(void *ctx, const struct btrkit_finding *f)
{
	const struct printing *p = ctx;
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_code(e, "finding", f->code);
	emit_what(e, &f->what);
	if (f->has_values) {
		emit_u64(e, "found", ", found ", f->found);
		emit_u64(e, "expected", ", expected ", f->expected);
	}
	if (f->path)
		emit_name_escaped(e, "path", ", path ", f->path, strlen(f->path), false);
	if (f->times > 1 || e->form == EMIT_JSON) {
		emit_u64(e, "times", ", ", f->times);
		emit_text(e, " times");
	}
	if (p->folded || !(f->what.places & BTRKIT_AT_LOGICAL))
		emit_step(e, f->what.cause, f->what.unmirrored);
	if (e->form == EMIT_TEXT && !strcmp(f->code->name, "BTR-SUPER-OLD"))
		emit_text(e, "; Linux writes it with its next commit");
	emit_text(e, "\n");
	emit_object_end(e);
	return emit_failed(e);
}

static int print_more(void *ctx, const struct btrkit_check_code *code, uint64_t n)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_code(e, "more", code);
	emit_u64(e, "times", ": ", n);
	emit_text(e, " more\n");
	emit_object_end(e);
	return emit_failed(e);
}

static void emit_numbers(struct emit *e, const char *key, const char *word, const uint64_t *at, unsigned n)
{
	if (n > BTRKIT_CHECK_FOLD_LISTED)
		n = BTRKIT_CHECK_FOLD_LISTED;
	emit_array(e, key);
	for (unsigned i = 0; i < n; i++)
		emit_u64(e, NULL, i ? ", " : word, at[i]);
	emit_array_end(e);
}

/* What the findings have in common, and for a device what can be done. */
static void emit_cause(struct emit *e, const struct btrkit_check_fold *f)
{
	if (f->cause == BTRKIT_CAUSE_DEVICE_MISSING)
		emit_textf(e, ": device %" PRIu64 " is missing", f->devid);
	else if (f->cause == BTRKIT_CAUSE_DEVICE_STALE)
		emit_textf(e, ": device %" PRIu64 " is stale, it missed the last writes", f->devid);
	else if (f->devid)
		emit_textf(e, ": %s, device %" PRIu64, f->what.message, f->devid);
	else
		emit_textf(e, ": %s", f->what.message);
	emit_word(e, "cause", btrkit_cause_name(f->cause));
	if (e->form == EMIT_JSON)
		emit_u64(e, "devid", "", f->devid);
}

static int print_fold(void *ctx, const struct btrkit_check_fold *f)
{
	struct emit *e = ctx;

	emit_object(e, NULL);
	emit_code(e, "fold", f->code);
	emit_cause(e, f);
	emit_u64(e, "times", ": ", f->findings);
	emit_u64(e, "bytes", " findings, ", f->bytes);
	emit_text(e, " bytes");
	emit_numbers(e, "trees", f->num_trees > 1 ? ", trees " : ", tree ", f->trees, f->num_trees);
	if (f->num_trees > BTRKIT_CHECK_FOLD_LISTED)
		emit_text(e, " and more");
	emit_u64(e, "last", ", up to block ", f->last);
	emit_numbers(e, "first", ", the first at ", f->addresses, f->num_addresses);
	emit_step(e, f->cause, f->what.unmirrored);
	emit_text(e, "\n");
	emit_object_end(e);
	return emit_failed(e);
}

static void print_verdict(struct emit *e, const struct btrkit_check_result *r)
{
	const uint64_t refused = r->findings[BTRKIT_CHECK_REFUSED], wrong = r->findings[BTRKIT_CHECK_MISBEHAVES];
	const uint64_t left = r->findings[BTRKIT_CHECK_LEFTOVER];

	if (refused + wrong)
		emit_textf(e, ": %" PRIu64 " error%s (%" PRIu64 " refused)", refused + wrong,
			   refused + wrong > 1 ? "s" : "", refused);
	else
		emit_text(e, ": no errors");
	if (left)
		emit_textf(e, ", %" PRIu64 " leftover%s", left, left > 1 ? "s" : "");
	emit_text(e, "\n");
}

static void print_summary(struct emit *e, const struct btrkit_check_result *r, bool data)
{
	emit_object(e, NULL);
	emit_word(e, "kind", "summary");
	emit_u64(e, "blocks", "checked ", r->blocks);
	emit_u64(e, "extents", " tree blocks, ", r->extents);
	emit_text(e, " data extents");
	if (data || e->form == EMIT_JSON) {
		emit_u64(e, "data", ", ", r->data);
		emit_text(e, " bytes of data");
	}
	if (r->unreached_blocks || r->unreached_extents || e->form == EMIT_JSON) {
		emit_u64(e, "unreached_blocks", ", not reached because of lost blocks: ", r->unreached_blocks);
		emit_u64(e, "unreached_extents", " tree blocks, ", r->unreached_extents);
		emit_u64(e, "unreached_data", " data extents of ", r->unreached_data);
		emit_text(e, " bytes");
	}
	if (e->form == EMIT_JSON) {
		for (unsigned i = 0; i < BTRKIT_CHECK_SEVERITIES; i++)
			emit_u64(e, btrkit_check_severity_name((enum btrkit_check_severity)i), "", r->findings[i]);
		emit_u64(e, "table_bytes", "", r->table_bytes);
	} else {
		print_verdict(e, r);
	}
	emit_object_end(e);
}

int print_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, enum btrkit_format format,
		       btrkit_write_fn write, void *ctx, struct btrkit_check_result *ret, struct btrkit_error *err)
{
	struct btrkit_check_options own = BTRKIT_CHECK_OPTIONS_INIT;
	struct btrkit_check_result result;
	struct printing p;
	int r = list_begin(&p.e, format, "check", write, ctx, err);

	if (r)
		return r;
	if (opts)
		own = *opts;
	own.finding = print_finding;
	own.more = print_more;
	/* JSON has the single findings as well. Text has them if their number is given. */
	if (format == BTRKIT_FORMAT_JSON || !own.repeats)
		own.fold = print_fold;
	p.folded = own.fold;
	if (format != BTRKIT_FORMAT_JSON && !own.repeats)
		own.flags |= BTRKIT_CHECK_FOLDED;
	own.ctx = &p;
	r = btrkit_check(fs, &own, &result, err);
	if (!r)
		print_summary(&p.e, &result, own.flags & BTRKIT_CHECK_DATA);
	r = list_end(&p.e, r);
	if (!r && ret)
		*ret = result;
	return r;
}

int print_check_codes(enum btrkit_format format, btrkit_write_fn write, void *ctx, struct btrkit_error *err)
{
	size_t n;
	const struct btrkit_check_code *codes = btrkit_check_codes(&n);
	struct emit e;
	int r = list_begin(&e, format, "check", write, ctx, err);

	if (r)
		return r;
	for (size_t i = 0; i < n && !emit_failed(&e); i++) {
		emit_object(&e, NULL);
		emit_code(&e, "code", &codes[i]);
		emit_str(&e, "meaning", ": ", codes[i].meaning);
		emit_text(&e, "\n");
		emit_object_end(&e);
	}
	return list_end(&e, 0);
}
