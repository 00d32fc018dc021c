// SPDX-License-Identifier: LGPL-2.1-or-later
/* The order of the steps. */
#include <btrkit/usage.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/each.h"
#include "lib/base/err.h"
#include "lib/base/text.h"
#include "lib/usage/extents.h"
#include "lib/usage/log.h"
#include "lib/usage/owners/roots.h"
#include "lib/usage/owners/sets.h"
#include "lib/usage/state.h"
#include "lib/usage/sum.h"
#include "lib/usage/table.h"
#include "lib/usage/walk.h"
#include "lib/usage/work.h"

#define SET_MEMORY_DEFAULT (128u << 20)

static int verify_options(const struct btrkit_fs *fs, const struct btrkit_usage_options *opts, struct btrkit_error *err)
{
	if (opts->flags)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	return fs_check_committed(fs, err);
}

static int load(struct usage_work *w, struct btrkit_error *err)
{
	struct tree_root extent_tree = { 0 };
	int ret;

	ret = usage_find_roots(w, &extent_tree, err);
	if (!ret)
		ret = usage_name_owners(w, err);
	if (!ret)
		ret = usage_load_extents(w, &extent_tree, err);
	if (!ret)
		ret = usage_walk(w, err);
	if (!ret)
		ret = usage_load_logs(w, err);
	return ret ? ret : usage_sum(w, err);
}

static void release_work(struct usage_work *w)
{
	free(w->roots.at);
	free(w->own.at);
	free(w->v1.at);
	free(w->lost.at);
	for (unsigned i = 0; i < LEVELS_MAX; i++)
		free(w->strays[i].at);
	free(w->data_strays.at);
	free(w->dropped.at);
	free(w->pending.at);
	free(w->orphans);
	pthread_mutex_destroy(&w->lock);
}

int btrkit_usage_load(struct btrkit_fs *fs, const struct btrkit_usage_options *opts, struct btrkit_usage **ret,
		      struct btrkit_error *err)
{
	static const struct btrkit_usage_options defaults = BTRKIT_USAGE_OPTIONS_INIT;
	struct usage_work *w;
	int r;

	if (!opts)
		opts = &defaults;
	r = verify_options(fs, opts, err);
	if (r)
		return r;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(err);
	w->u = calloc(1, sizeof(*w->u));
	if (!w->u) {
		free(w);
		return err_nomem(err);
	}
	w->fs = fs;
	w->opts = *opts;
	if (!w->opts.set_memory)
		w->opts.set_memory = SET_MEMORY_DEFAULT;
	w->threads = usage_threads(opts->threads);
	w->u->sectorsize = fs->geometry.sectorsize;
	w->u->nodesize = fs->geometry.nodesize;
	pthread_mutex_init(&w->lock, NULL);
	r = load(w, err);
	release_work(w);
	if (r)
		btrkit_usage_free(w->u);
	else
		*ret = w->u;
	free(w);
	return r;
}

struct btrkit_usage *btrkit_usage_free(struct btrkit_usage *u)
{
	if (!u)
		return NULL;
	usage_table_release(&u->blocks);
	usage_table_release(&u->extents);
	sets_release(&u->sets);
	free(u->final);
	free(u->owners);
	free(u->inside);
	free(u->outside);
	free(u->counting);
	free(u->reported.at);
	free(u);
	return NULL;
}
