/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BTRKIT_REPORT_SUBVOLUMES_H
#define BTRKIT_REPORT_SUBVOLUMES_H

/* Which subvolumes are listed, and in which order. */

#include <btrkit/inspect.h>

#include "lib/format/items/root.h"

/* One that is listed when its turn has come. */
struct subvolume_listed {
	uint64_t id;
	struct root_item item;
	char *path;	/* where the order asks for it */
	size_t path_len;
};

/* @return 0; -EINVAL */
int subvolumes_judge(const struct btrkit_subvolumes_options *o, struct btrkit_error *err) BTRKIT_MUST_CHECK;

/* Whether one is, by its root item; in which other one it lies is for the caller to see. */
bool subvolumes_wanted(const struct btrkit_subvolumes_options *o, const struct btrkit_key *key,
		       const struct root_item *item);

/* Whether the order asks for paths. */
bool subvolumes_by_path(const struct btrkit_subvolumes_options *o);

/* For qsort_r() of struct subvolume_listed; @ctx is the options. */
int subvolumes_compare(const void *a, const void *b, void *ctx);

#endif
