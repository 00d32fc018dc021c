// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A missing device makes each block that is only there a finding. Here they are counted by code, cause and device. All
 * that is kept of a fold has a fixed size, and which findings those are does not depend on the order of threads.
 */
#include "lib/check/folds.h"

#include <stdlib.h>
#include <string.h>

#include "lib/check/findings.h"

/* More findings than this are folded: if the device is missing or stale, and with another cause. */
#define DEVICE_ABOVE 1u
#define OTHER_ABOVE 8u
#define KEPT_MAX 32u	/* findings to keep of each fold, in case that it is not folded, and to find equal ones */

/* Only bad copies, which say nothing but where they are. @return the bytes of each; 0: a code of another kind */
static uint32_t unit_of(const struct check *c, enum check_code code)
{
	switch (code) {
	case CHECK_BLOCK_READ:
	case CHECK_BLOCK_CSUM:
	case CHECK_BLOCK_HEADER:
	case CHECK_BLOCK_COPY:
		return c->items.nodesize;
	case CHECK_DATA_CSUM:
	case CHECK_DATA_COPY:
	case CHECK_DATA_PARITY:
		return c->items.sectorsize;
	default:
		return 0;
	}
}

/* Inserts a number into a sorted list of the lowest ones. @n becomes BTRKIT_CHECK_FOLD_LISTED + 1 if there are more. */
static void keep_low(uint64_t *at, unsigned *n, uint64_t number)
{
	const unsigned listed = *n < BTRKIT_CHECK_FOLD_LISTED ? *n : BTRKIT_CHECK_FOLD_LISTED;
	const bool full = listed == BTRKIT_CHECK_FOLD_LISTED;
	unsigned i = 0;

	while (i < listed && at[i] < number)
		i++;
	if (i < listed && at[i] == number)
		return;
	*n = full ? BTRKIT_CHECK_FOLD_LISTED + 1 : listed + 1;
	if (i == BTRKIT_CHECK_FOLD_LISTED)
		return;
	memmove(at + i + 1, at + i, (listed - full - i) * sizeof(*at));
	at[i] = number;
}

/* @return NULL: there are too many, or there is no memory for them; either way none is folded */
static struct check_fold *fold_of(struct check *c, enum check_code code, const struct btrkit_error *what)
{
	struct check_fold *f;

	for (size_t i = 0; i < c->num_folds; i++) {
		f = &c->folds[i];
		if (f->code == code && f->cause == what->cause && f->devid == what->devid)
			return f;
	}
	if (!c->folds)
		c->folds = calloc(CHECK_FOLDS_MAX, sizeof(*c->folds));
	if (!c->folds || c->num_folds == CHECK_FOLDS_MAX) {
		c->too_many_folds = true;
		return NULL;
	}
	f = &c->folds[c->num_folds++];
	*f = (struct check_fold){ .code = code, .cause = what->cause, .devid = what->devid };
	return f;
}

bool check_folds_take(struct check *c, enum check_code code, const struct check_finding *f)
{
	const struct btrkit_error *what = &f->what;
	struct check_fold *fold;

	if (!c->opts.fold || !what->cause || !unit_of(c, code) || !(what->places & BTRKIT_AT_LOGICAL))
		return false;
	fold = fold_of(c, code, what);
	if (!fold)
		return false;
	if (!check_insert_finding(c, &fold->list, c->opts.repeats < KEPT_MAX ? c->opts.repeats : KEPT_MAX, f))
		return true;
	if (fold->last < what->logical)
		fold->last = what->logical;
	keep_low(fold->addresses, &fold->num_addresses, what->logical);
	if (what->places & BTRKIT_AT_TREE)
		keep_low(fold->trees, &fold->num_trees, what->tree);
	return true;
}

static bool is_folded(const struct check *c, const struct check_fold *f)
{
	const bool device = f->cause == BTRKIT_CAUSE_DEVICE_MISSING || f->cause == BTRKIT_CAUSE_DEVICE_STALE;

	return !c->too_many_folds && f->list.total > (device ? DEVICE_ABOVE : OTHER_ABOVE);
}

static int compare_folds(const void *a, const void *b)
{
	const struct check_fold *x = a, *y = b;

	if (x->code != y->code)
		return check_compare(x->code, y->code);
	return x->devid != y->devid ? check_compare(x->devid, y->devid) : check_compare(x->cause, y->cause);
}

void check_folds_settle(struct check *c)
{
	if (c->num_folds)
		qsort(c->folds, c->num_folds, sizeof(*c->folds), compare_folds);
	for (size_t i = 0; i < c->num_folds && c->opts.flags & BTRKIT_CHECK_FOLDED; i++) {
		const struct check_fold *f = &c->folds[i];
		struct check_findings *to = &c->findings[f->code];

		if (is_folded(c, f))
			continue;
		for (size_t k = 0; k < f->list.n; k++)
			check_insert_finding(c, to, c->opts.repeats, &f->list.at[k]);
		to->total += f->list.total - f->list.n;
	}
}

int check_folds_hand_out(struct check *c, enum check_code code, const struct btrkit_check_code *public)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < c->num_folds; i++) {
		const struct check_fold *f = &c->folds[i];
		struct btrkit_check_fold told = { .code = public, .cause = f->cause, .devid = f->devid };

		if (f->code != code || !is_folded(c, f))
			continue;
		told.findings = f->list.total;
		told.bytes = f->list.total * unit_of(c, code);
		told.last = f->last;
		told.num_addresses = f->num_addresses < BTRKIT_CHECK_FOLD_LISTED ? f->num_addresses :
										   BTRKIT_CHECK_FOLD_LISTED;
		told.num_trees = f->num_trees;
		memcpy(told.addresses, f->addresses, sizeof(told.addresses));
		memcpy(told.trees, f->trees, sizeof(told.trees));
		told.what = f->list.at[0].what;
		if (c->opts.flags & BTRKIT_CHECK_FOLDED)
			c->result.findings[public->severity] += told.findings;
		ret = c->opts.fold(c->opts.ctx, &told);
	}
	return ret;
}

void check_folds_release(struct check *c)
{
	for (size_t i = 0; i < c->num_folds; i++)
		free(c->folds[i].list.at);
	free(c->folds);
}
