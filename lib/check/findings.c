// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads report findings in any order. For each code, the first ones by location are kept, and all are counted, so
 * that every run on a filesystem reports the same.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/folds.h"
#include "lib/check/state.h"
#include "lib/format/ids.h"
#include "lib/volume/volume.h"

void *check_list_add(struct check *c, struct array *list, size_t size)
{
	void *ret = array_add(list, size, NULL);
	struct btrkit_error err = BTRKIT_ERROR_INIT;

	if (!ret)
		check_fail(c, err_nomem(&err), &err);
	return ret;
}

/* The caller holds the lock. */
static int fail(struct check *c, int ret, const struct btrkit_error *err)
{
	if (!c->failed) {
		c->failed = ret;
		if (err)
			c->failure = *err;
	}
	return c->failed;
}

int check_fail(struct check *c, int ret, const struct btrkit_error *err)
{
	pthread_mutex_lock(&c->lock);
	ret = fail(c, ret, err);
	pthread_mutex_unlock(&c->lock);
	return ret;
}

bool check_failed(struct check *c)
{
	bool failed;

	pthread_mutex_lock(&c->lock);
	failed = c->failed;
	pthread_mutex_unlock(&c->lock);
	return failed;
}

void check_progress(struct check *c, uint64_t n)
{
	pthread_mutex_lock(&c->lock);
	c->done += n;
	if (c->opts.progress && !c->failed) {
		const int ret = c->opts.progress(c->opts.progress_ctx, c->done < c->due ? c->done : c->due, c->due);

		if (ret)
			fail(c, ret, NULL);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Compares by location, then by message. */
static int compare(const struct check_finding *a, const struct check_finding *b)
{
	const struct btrkit_error *x = &a->what, *y = &b->what;
	int cmp = check_compare(x->tree, y->tree);

	if (!cmp)
		cmp = key_cmp(&x->key, &y->key);
	if (!cmp)
		cmp = check_compare(x->logical, y->logical);
	if (!cmp)
		cmp = check_compare(x->devid, y->devid);
	if (!cmp)
		cmp = check_compare(x->physical, y->physical);
	if (!cmp)
		cmp = check_compare(x->slot, y->slot);
	if (!cmp)
		cmp = strcmp(x->field, y->field);
	if (!cmp)
		cmp = strcmp(x->message, y->message);
	return cmp;
}

/* Index of the first finding that is not before @f. *same: whether it is equal. */
static size_t find_finding(const struct check_findings *l, const struct check_finding *f, bool *same)
{
	size_t low = 0, high = l->n;

	*same = false;
	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const int cmp = compare(&l->at[mid], f);

		*same |= !cmp;
		if (cmp < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool check_insert_finding(struct check *c, struct check_findings *l, size_t most, const struct check_finding *f)
{
	bool same;
	const size_t at = find_finding(l, f, &same);

	if (same) {
		l->at[at].times += f->times;
		return false;
	}
	l->total++;
	if (at == most)
		return true;
	if (l->n == l->room) {
		const size_t room = l->room ? 2 * l->room : 4;
		struct check_finding *more = reallocarray(l->at, room, sizeof(*more));

		if (!more) {
			struct btrkit_error err = BTRKIT_ERROR_INIT;

			fail(c, err_nomem(&err), &err);
			return false;
		}
		l->at = more;
		l->room = room;
	}
	if (l->n == most)
		l->n--;
	memmove(&l->at[at + 1], &l->at[at], (l->n - at) * sizeof(*l->at));
	l->at[at] = *f;
	l->n++;
	return true;
}

static void store_finding(struct check *c, enum check_code code, struct check_finding *f)
{
	f->times = 1;
	if (f->what.cause == BTRKIT_CAUSE_DEVICE_STALE)
		f->what.unmirrored = volume_unmirrored(c->fs->volume, f->what.devid);
	pthread_mutex_lock(&c->lock);
	if (!check_folds_take(c, code, f) || !(c->opts.flags & BTRKIT_CHECK_FOLDED))
		check_insert_finding(c, &c->findings[code], c->opts.repeats, f);
	pthread_mutex_unlock(&c->lock);
}

void check_report(struct check *c, enum check_code code, const struct btrkit_error *what)
{
	struct check_finding f = { .what = *what };

	store_finding(c, code, &f);
}

enum check_code check_code_of_invalid(const struct btrkit_key *key)
{
	/* Quotas, an interrupted balance, statistics and replacement of devices, and UUIDs of subvolumes. */
	const bool unchecked = key->type >= KEY_QGROUP_STATUS && key->type <= KEY_UUID_RECEIVED_SUBVOL;

	return unchecked ? CHECK_ITEM_UNCHECKED : CHECK_ITEM_INVALID;
}

void check_report_values(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t found,
			 uint64_t expected)
{
	struct check_finding f = { .what = *what, .has_values = true, .found = found, .expected = expected };

	store_finding(c, code, &f);
}

void check_withdraw(struct check *c, enum check_code code, const struct btrkit_error *what, uint64_t apart)
{
	struct check_findings *l = &c->findings[code];
	const struct check_finding f = { .what = *what };
	bool same;
	size_t at;

	pthread_mutex_lock(&c->lock);
	at = find_finding(l, &f, &same);
	if (same && l->at[at].has_values && l->at[at].found - l->at[at].expected == apart) {
		l->n--;
		l->total--;
		memmove(&l->at[at], &l->at[at + 1], (l->n - at) * sizeof(*l->at));
	}
	pthread_mutex_unlock(&c->lock);
}

void check_report_at(struct check *c, enum check_code code, const struct check_location *at, const char *fmt, ...)
{
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	char message[sizeof(what.message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	err_corrupt(&what, at->field, "%s", message);
	if (at->tree)
		err_at_tree(&what, at->tree);
	if (at->logical)
		err_at_logical(&what, at->logical);
	if (at->key)
		err_at_key(&what, at->key);
	if (at->devid && at->physical)
		err_at_device(&what, at->devid, at->physical);
	else if (at->devid)
		err_at_devid(&what, at->devid);
	what.cause = at->cause;
	if (at->values)
		check_report_values(c, code, &what, at->values[0], at->values[1]);
	else
		check_report(c, code, &what);
}

/* The code to report for a block that could not be read. */
static enum check_code code_of(int ret, const struct btrkit_error *what)
{
	static const struct {
		const char *field;
		enum check_code code;
	} fields[] = {
		{ "csum", CHECK_BLOCK_CSUM },	 { "fsid", CHECK_BLOCK_HEADER },       { "bytenr", CHECK_BLOCK_HEADER },
		{ "level", CHECK_BLOCK_HEADER }, { "generation", CHECK_BLOCK_HEADER }, { "owner", CHECK_BLOCK_HEADER },
	};

	/* If no chunk maps the block, it was not read, and no field is set. */
	if (ret != -EUCLEAN || !what->field[0])
		return CHECK_BLOCK_READ;
	if (what->places & BTRKIT_AT_SLOT)
		return CHECK_BLOCK_ORDER;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(fields[i].field, what->field))
			return fields[i].code;
	return CHECK_BLOCK_ORDER;
}

void check_report_unreadable(struct check *c, uint64_t tree, int ret, const struct btrkit_error *what)
{
	struct btrkit_error own = *what;

	if (ret == -ENOMEM) {
		check_fail(c, ret, what);
		return;
	}
	err_at_tree(&own, tree);
	check_report(c, code_of(ret, &own), &own);
}
