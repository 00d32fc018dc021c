// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Adds up the space of log trees: recent changes that Linux will merge into the file trees when it mounts the
 * filesystem.
 */
#include "lib/base/err.h"
#include "lib/sweep/leaves.h"
#include "lib/sweep/log.h"
#include "lib/usage/damage.h"
#include "lib/usage/leaves.h"
#include "lib/usage/log.h"
#include "lib/usage/owners/reach.h"
#include "lib/usage/state.h"
#include "lib/usage/table.h"

#include <inttypes.h>
#include <stdlib.h>

struct log {
	struct usage_work *w;
	struct array data;	       /* struct usage_stray with sectors and info: of the log being read */
	uint64_t blocks;	       /* number of blocks read before it */
	struct btrkit_usage_space *to; /* where its space is added */
};

static int take_data(void *ctx, const struct sweep_log_item *at, const struct file_extent *fe, struct btrkit_error *err)
{
	struct log *l = ctx;
	struct usage_work *w = l->w;
	const uint32_t sector = w->u->sectorsize;
	struct usage_stray s;
	size_t hint = 0;

	(void)at;
	if (!fe->disk_bytenr ||
	    usage_table_find(&w->u->extents, sizeof(struct usage_extent), fe->disk_bytenr, &hint) != SIZE_MAX)
		return 0;
	s = (struct usage_stray){ .bytenr = fe->disk_bytenr, .sectors = usage_sectors(w->u, fe->disk_num_bytes) };
	if (fe->compression && fe->ram_bytes / sector < USAGE_UNCOMPRESSED_MAX)
		s.info = (uint32_t)(fe->ram_bytes / sector) << USAGE_UNCOMPRESSED_SHIFT;
	return usage_strays_add(w, &l->data, &s, err);
}

static int invalid(void *ctx, const struct sweep_log_item *at, int ret, const struct btrkit_error *what,
		   struct btrkit_error *err)
{
	const struct log *l = ctx;

	(void)at;
	return usage_damage(l->w, ret, what, err);
}

static int begin(void *ctx, const struct tree_root *root, bool top, bool *read, struct btrkit_error *err)
{
	struct log *l = ctx;
	struct btrkit_usage *u = l->w->u;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	size_t owner = u->num_owners - 1;

	if (!top && btrkit_usage_find(u, root->key_offset, &owner)) {
		*read = false;
		err_corrupt(&what, "key.offset", "log tree of subvolume %" PRIu64 ", which does not exist",
			    root->key_offset);
		err_at_tree(&what, OID_TREE_LOG);
		return usage_damage(l->w, -EUCLEAN, &what, err);
	}
	l->to = &u->owners[owner].log;
	l->blocks = u->total.blocks_read;
	l->data.n = 0;
	return 0;
}

static void add_data(const struct log *l)
{
	const struct usage_stray *s = l->data.at;

	for (size_t i = 0; i < l->data.n; i++) {
		const uint64_t uncompressed = s[i].info >> USAGE_UNCOMPRESSED_SHIFT;

		l->to->data += (uint64_t)s[i].sectors * l->w->u->sectorsize;
		l->to->uncompressed += (uncompressed ? uncompressed : s[i].sectors) * l->w->u->sectorsize;
		l->to->extents++;
	}
}

static int end(void *ctx, const struct tree_root *root, bool top, struct btrkit_error *err)
{
	struct log *l = ctx;
	const uint64_t blocks = l->w->u->total.blocks_read - l->blocks;
	int ret = usage_strays_tidy(l->w, &l->data, err);

	(void)root;
	(void)top;
	l->to->blocks += blocks;
	l->to->metadata += blocks * l->w->u->nodesize;
	if (!ret)
		add_data(l);
	return ret;
}

int usage_load_logs(struct usage_work *w, struct btrkit_error *err)
{
	struct log l = { .w = w };
	const struct sweep_log_events events = {
		.begin = begin,
		.end = end,
		.invalid = invalid,
		.extent = take_data,
		.ctx = &l,
	};
	const struct sweep_blocks from = usage_from_cache(&(struct usage_blocks){ .w = w });
	int ret = sweep_logs(w->fs, &from, &events, err);

	free(l.data.at);
	return ret;
}
