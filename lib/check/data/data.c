// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verifies all data that has checksums, piece by piece in address order. */
#include "lib/base/each.h"
#include "lib/check/data/data.h"
#include "lib/check/data/data_parity.h"
#include "lib/check/data/data_progress.h"
#include "lib/check/data/data_sectors.h"
#include "lib/check/findings.h"
#include "lib/check/log/log_ranges.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/check/trees/roots.h"
#include "lib/check/volume/groups.h"
#include "lib/format/feature.h"
#include "lib/format/feature_bits.h"
#include "lib/space/range.h"

#include <stdlib.h>
#include <string.h>


#define PIECE_BYTES (1u << 20)
#define BATCH_PIECES 256u
#define BATCH_SUMS (4u << 20) /* bytes of checksums; must be enough for a leaf */

/* One thread collects checksums; then all threads read the data. */
struct gathering {
	struct data_check d;
	struct data_piece pieces[BATCH_PIECES];
	size_t n;
	uint8_t *sums;
	size_t sums_len;
	size_t group_hint;
};

static void work(void *ctx, size_t i)
{
	struct gathering *g = ctx;

	if (check_failed(g->d.c))
		return;
	data_check_piece(&g->d, &g->pieces[i]);
	data_progress(&g->d, g->pieces[i].length);
}

static void run_batch(struct gathering *g)
{
	each(g->n, g->d.c->threads, work, g);
	g->n = 0;
	g->sums_len = 0;
}

/* Limits a range to its block group and to the size of a piece. @return 0: no block group, reported elsewhere */
static uint64_t fits(struct gathering *g, uint64_t logical, uint64_t length)
{
	const struct check_group *group = check_group_of(g->d.c, logical, &g->group_hint);
	const uint64_t left = group && group->chunk ? group->start + group->length - logical : 0;

	if (length > PIECE_BYTES)
		length = PIECE_BYTES;
	return length < left ? length : left;
}

static void take_sums(struct gathering *g, uint64_t tree, uint64_t logical, uint64_t left, const uint8_t *sums)
{
	const struct item_ctx *items = &g->d.c->items;

	while (left) {
		uint64_t length = fits(g, logical, left);
		const size_t size = length / items->sectorsize * items->csum_size;

		if (!length)
			return;
		if (g->n == BATCH_PIECES || g->sums_len + size > BATCH_SUMS)
			run_batch(g);
		memcpy(g->sums + g->sums_len, sums, size);
		g->pieces[g->n++] = (struct data_piece){ logical, length, g->sums + g->sums_len, tree };
		g->sums_len += size;
		sums += size;
		logical += length;
		left -= length;
	}
}

static void take_item(void *ctx, const struct item *item)
{
	struct gathering *g = ctx;
	const struct item_ctx *items = &g->d.c->items;
	const uint64_t logical = item->key.offset;
	const uint64_t length = (uint64_t)(item->size / items->csum_size) * items->sectorsize;

	if (item->key.type == KEY_EXTENT_CSUM && !item_validate(items, item, NULL) && logical + length >= logical)
		take_sums(g, OID_CSUM_TREE, logical, length, item->data);
}

/* Takes the checksums in logs whose data the logs refer to; others belong to data that was dropped since. */
static void take_logs(struct gathering *g)
{
	struct check *c = g->d.c;
	const struct check_log_sum *sums = c->log_sums.at;

	for (size_t i = 0; i < c->log_sums.n && !check_failed(c); i++) {
		const uint64_t start = sums[i].start, end = start + sums[i].length;
		uint64_t pos, next;

		for (pos = start; pos < end; pos = next) {
			const size_t at = (pos - start) / c->items.sectorsize * c->items.csum_size;

			next = end;
			if (check_log_data(c, pos, &next))
				take_sums(g, OID_TREE_LOG, pos, next - pos, sums[i].sums + at);
		}
	}
}

static void check_sums(struct gathering *g, const struct check_root *root)
{
	bool lost = false; /* already reported */

	if (root && check_each_item(g->d.c, &root->root, &lost, take_item, g))
		return;
	take_logs(g);
	run_batch(g);
}

static void release(struct gathering *g)
{
	if (!g)
		return;
	free(g->d.bad);
	free(g->sums);
	free(g);
}

int check_data(struct check *c)
{
	const struct check_root *root = check_find_root(c, OID_CSUM_TREE);
	const struct range *ranges = c->csums.at, *logged = c->log_data.at;
	struct btrkit_error err = BTRKIT_ERROR_INIT;
	struct gathering *g;
	uint64_t bytes = 0;

	if (!(c->opts.flags & BTRKIT_CHECK_DATA))
		return 0;
	/* With a stripe tree, data is not where its chunk maps it. */
	if (c->items.incompat & INCOMPAT_RAID_STRIPE_TREE)
		return check_fail(c,
				  features_refuse(BTRKIT_FEATURE_INCOMPAT, INCOMPAT_RAID_STRIPE_TREE,
						  "checking file data is not supported", &err),
				  &err);
	g = calloc(1, sizeof(*g));
	if (g) {
		g->d.c = c;
		g->sums = malloc(BATCH_SUMS);
		g->d.bad = malloc(DATA_BAD_MAX * sizeof(*g->d.bad));
	}
	if (!g || !g->sums || !g->d.bad) {
		release(g);
		return check_fail(c, err_nomem(&err), &err);
	}
	for (size_t i = 0; i < c->csums.n; i++)
		bytes += ranges[i].length;
	for (size_t i = 0; i < c->log_data.n; i++)
		bytes += logged[i].length;
	c->due += (bytes + data_parity_bytes(c)) / c->items.nodesize;
	check_sums(g, root);
	if (!check_failed(c))
		data_check_parity(&g->d);
	release(g);
	return c->failed;
}
