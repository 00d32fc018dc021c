// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs a complete check. */
#include <btrkit/check.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/each.h"
#include "lib/check/codes.h"
#include "lib/check/data/csums.h"
#include "lib/check/data/data.h"
#include "lib/check/files/leaves.h"
#include "lib/check/findings.h"
#include "lib/check/folds.h"
#include "lib/check/hand_out.h"
#include "lib/check/log/log.h"
#include "lib/check/log/log_ranges.h"
#include "lib/check/quota/qgroups.h"
#include "lib/check/space/space.h"
#include "lib/check/state.h"
#include "lib/check/supers/supers.h"
#include "lib/check/trees/balance.h"
#include "lib/check/trees/extents.h"
#include "lib/check/trees/refs.h"
#include "lib/check/trees/replace.h"
#include "lib/check/trees/roots.h"
#include "lib/check/trees/stripes.h"
#include "lib/check/trees/subvolumes.h"
#include "lib/check/trees/table.h"
#include "lib/check/trees/walk.h"
#include "lib/check/volume/volume.h"

#define REPEATS_DEFAULT 32u
#define REPEATS_MAX 65536u

static int run(struct check *c)
{
	static int (*const parts[])(struct check * c) = {
		check_supers,
		check_volume,
		check_roots,
		check_csums,
		check_extents,
		check_stripes,
		check_walk,
		check_leaves,
		check_refs,
		check_logs,
		check_csum_extents,
		check_space,
		check_subvolumes,
		check_balance,
		check_replace,
		check_data,
		check_qgroups,
		NULL,
	};

	for (size_t i = 0; parts[i] && !check_failed(c); i++)
		parts[i](c);
	return c->failed ? c->failed : check_hand_out(c);
}

static void release(struct check *c)
{
	for (size_t i = 0; i < CHECK_NUM_CODES; i++)
		free(c->findings[i].at);
	check_folds_release(c);
	check_tables_release(&c->tables);
	free(c->roots.at);
	free(c->groups.at);
	free(c->csums.at);
	free(c->stripes.at);
	free(c->nodatasum.at);
	free(c->log_data.at);
	check_log_sums_release(c);
	free(c->names.at);
	free(c->circles.at);
	pthread_mutex_destroy(&c->lock);
}

int btrkit_check(struct btrkit_fs *fs, const struct btrkit_check_options *opts, struct btrkit_check_result *ret,
		 struct btrkit_error *err)
{
	struct check *c;
	int r;

	if (opts && opts->flags & ~(unsigned)(BTRKIT_CHECK_DATA | BTRKIT_CHECK_FOLDED))
		return err_set(err, BTRKIT_INVALID, "unknown flags 0x%x", opts->flags);
	if (opts && opts->flags & BTRKIT_CHECK_FOLDED && !opts->fold)
		return err_set(err, BTRKIT_INVALID, "BTRKIT_CHECK_FOLDED without a fold callback");
	r = fs_check_committed(fs, err);
	if (r)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_nomem(err);
	c->fs = fs;
	c->items = fs->items;
	if (opts)
		c->opts = *opts;
	if (!c->opts.repeats)
		c->opts.repeats = REPEATS_DEFAULT;
	if (c->opts.repeats > REPEATS_MAX)
		c->opts.repeats = REPEATS_MAX;
	c->threads = c->opts.threads ? c->opts.threads : each_processor();
	if (getrandom(&c->key, sizeof(c->key), GRND_NONBLOCK) != sizeof(c->key))
		c->key = (uint64_t)(uintptr_t)c;
	pthread_mutex_init(&c->lock, NULL);
	check_tables_init(&c->tables, c->opts.memory, c->opts.spill);
	r = run(c);
	c->result.table_bytes = c->tables.most;
	if (!r && ret)
		*ret = c->result;
	/* If a callback of the caller ended the check, there is no error to report. */
	if (r && err && c->failure.code != BTRKIT_OK)
		*err = c->failure;
	release(c);
	free(c);
	return r;
}
