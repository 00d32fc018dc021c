/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_SUBVOLUMES_H
#define BTRKIT_REPORT_SUBVOLUMES_H

/* Selection and order of listed subvolumes. */

#include <btrkit/inspect.h>

#include "lib/format/items/root.h"

/* A subvolume to be listed in sorted order. */
struct subvolume_listed {
	uint64_t id;
	struct root_item item;
	char *path;	/* only if the order needs it */
	size_t path_len;
};

/* In subvolumes_order.c: */
/* @return 0; -EINVAL */
int subvolumes_check(const struct btrkit_subvolumes_options *o, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether a subvolume is selected by its root item. The caller checks the parent. */
bool subvolumes_wanted(const struct btrkit_subvolumes_options *o, const struct btrkit_key *key,
		       const struct root_item *item);

/* Whether the order needs paths. */
bool subvolumes_by_path(const struct btrkit_subvolumes_options *o);

/* For qsort_r() of struct subvolume_listed; @ctx is the options. */
int subvolumes_compare(const void *a, const void *b, void *ctx);

#endif
