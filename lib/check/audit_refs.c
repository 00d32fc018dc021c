// SPDX-License-Identifier: LGPL-2.1-or-later
/* The references that the extent tree tells against those that there are: both sorted, then side by side. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/check/audit_state.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare(const void *x, const void *y)
{
	const struct audit_ref *a = x, *b = y;
	int cmp = compare_u64(a->bytenr, b->bytenr);

	if (!cmp)
		cmp = compare_u64(a->type, b->type);
	if (!cmp)
		cmp = compare_u64(a->root_or_parent, b->root_or_parent);
	if (!cmp)
		cmp = compare_u64(a->objectid, b->objectid);
	if (!cmp)
		cmp = compare_u64(a->offset, b->offset);
	return cmp;
}

/* Sorts, and joins equal ones. */
static void sort_and_join(struct audit_list *list)
{
	struct audit_ref *refs = list->at;
	size_t kept = 0;

	if (!list->n)
		return;
	qsort(refs, list->n, sizeof(*refs), compare);
	for (size_t i = 1; i < list->n; i++) {
		if (compare(&refs[kept], &refs[i]))
			refs[++kept] = refs[i];
		else
			refs[kept].count += refs[i].count;
	}
	list->n = kept + 1;
}

/* How often the extent tree tells a reference, and how often there is one. */
static int blame(const struct audit *a, const struct audit_ref *ref, uint64_t told, uint64_t made,
		 struct btrkit_error *err)
{
	const bool shared = ref->type == KEY_SHARED_BLOCK_REF || ref->type == KEY_SHARED_DATA_REF;
	const struct audit_extent *e = audit_extent_of(a, ref->bytenr);

	if (ref->type == KEY_EXTENT_DATA_REF)
		err_corrupt(err, "count",
			    "reference of tree %" PRIu64 ", inode %" PRIu64 ", offset %" PRIu64 ": told %" PRIu64
			    " times, made %" PRIu64 " times",
			    ref->root_or_parent, ref->objectid, ref->offset, told, made);
	else
		err_corrupt(err, "count",
			    "reference of %s %" PRIu64 ", type %u: told %" PRIu64 " times, made %" PRIu64 " times",
			    shared ? "block" : "tree", ref->root_or_parent, ref->type, told, made);
	if (e)
		audit_blame_extent(e, -EUCLEAN, err);
	err_at_logical(err, ref->bytenr);
	return -EUCLEAN;
}

static int judge_unique(struct audit *a, struct btrkit_error *err)
{
	struct audit_ref *refs = a->found.at;

	if (a->found.n)
		qsort(refs, a->found.n, sizeof(*refs), compare);
	for (size_t i = 1; i < a->found.n; i++)
		if (!compare(&refs[i - 1], &refs[i]))
			return audit_blame_extent(audit_extent_of(a, refs[i].bytenr),
						  err_corrupt(err, "type", "reference of type %u is told in two places",
							      refs[i].type),
						  err);
	return 0;
}

int audit_compare_refs(struct audit *a, struct btrkit_error *err)
{
	const struct audit_ref *found, *made;
	size_t i = 0, j = 0;
	int ret = judge_unique(a, err);

	if (ret)
		return ret;
	sort_and_join(&a->made);
	found = a->found.at;
	made = a->made.at;
	while (i < a->found.n || j < a->made.n) {
		const int cmp = i == a->found.n ? 1 : j == a->made.n ? -1 : compare(&found[i], &made[j]);

		if (cmp < 0)
			return blame(a, &found[i], found[i].count, 0, err);
		if (cmp > 0)
			return blame(a, &made[j], 0, made[j].count, err);
		if (found[i].count != made[j].count)
			return blame(a, &found[i], found[i].count, made[j].count, err);
		i++;
		j++;
	}
	return 0;
}
