// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints the directories for the page of usage_html.c: those whose deletion frees the most space, to limit the size of
 * the page.
 */
#include <btrkit/usage_paths.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/print/usage_page.h"

#define DIRS_MAX 20000u	   /* in a page */
#define STEPS 32u	   /* per power of two */
#define LADDER (64 * STEPS)
#define SIZES_BYTES 64	   /* three numbers in decimal */

/* Classify a size by its highest bit and the next five bits. @bytes is not 0. */
static size_t rung_of(uint64_t bytes)
{
	const unsigned top = 63 - (unsigned)__builtin_clzll(bytes);
	const uint64_t below = top > 5 ? bytes >> (top - 5) : bytes << (5 - top);

	return top * STEPS + (size_t)(below & (STEPS - 1));
}

/* The lowest class such that all directories in it and above fit into the page. */
static size_t find_least(const struct btrkit_usage_paths *paths)
{
	const size_t n = btrkit_usage_paths_num(paths);
	size_t counts[LADDER] = { 0 }, least = LADDER, sum = 0;
	struct btrkit_usage_path d;

	for (size_t i = 0; i < n; i++) {
		btrkit_usage_paths_get(paths, i, &d);
		if (d.frees)
			counts[rung_of(d.frees)]++;
	}
	while (least && sum + counts[least - 1] <= DIRS_MAX)
		sum += counts[--least];
	return least;
}

static void put_dir(struct emit *e, const struct btrkit_usage_path *d, size_t depth)
{
	char sizes[SIZES_BYTES];

	snprintf(sizes, sizeof(sizes), "%" PRIu64 " %" PRIu64 " %" PRIu64, d->frees, d->total, d->unshared);
	emit_array(e, NULL);
	emit_u64(e, NULL, "", depth);
	emit_name(e, NULL, "", d->name, d->name_len);
	emit_str(e, NULL, "", sizes);
	if (!d->depth) {
		char id[24];

		snprintf(id, sizeof(id), "%" PRIu64, d->root);
		emit_str(e, NULL, "", id);
	}
	emit_array_end(e);
}

/*
 * A directory does not free more than its parent, so the parents of a directory in the page are also in the page. They
 * are identified by the depth.
 */
int usage_html_put_paths(struct emit *e, const struct btrkit_usage_paths *paths, struct btrkit_error *err)
{
	const size_t n = btrkit_usage_paths_num(paths), least = find_least(paths);
	size_t *ends = calloc(DIRS_MAX + 1, sizeof(*ends)), depth = 0;
	struct btrkit_usage_path d;

	if (!ends)
		return err_nomem(err);
	emit_array(e, "directories");
	for (size_t i = 0; i < n && !emit_failed(e); i++) {
		btrkit_usage_paths_get(paths, i, &d);
		if (!d.frees || rung_of(d.frees) < least)
			continue;
		while (depth && ends[depth - 1] <= i)
			depth--;
		put_dir(e, &d, depth);
		ends[depth++] = d.end;
	}
	emit_array_end(e);
	free(ends);
	return 0;
}
