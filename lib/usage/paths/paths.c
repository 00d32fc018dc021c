// SPDX-License-Identifier: LGPL-2.1-or-later
/* Space usage by directory. */
#include "lib/usage/paths/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/usage/paths/paths_dirs.h"
#include "lib/usage/paths/paths_files.h"
#include "lib/usage/paths/paths_link.h"
#include "lib/usage/paths/paths_ranges.h"
#include "lib/usage/state.h"
#include "lib/usage/work.h"

static int load(struct paths_work *pw, struct btrkit_error *err)
{
	int ret = paths_find_subvolumes(pw, err);

	if (!ret)
		ret = paths_find_dirs(pw, err);
	if (!ret)
		ret = paths_link(pw, err);
	if (!ret)
		ret = paths_ranges_init(&pw->ranges, pw->opts.range_memory, pw->p->num_nodes, pw->usage->sectorsize,
					err);
	return ret ? ret : paths_count(pw, err);
}

/* Returns the number of blocks to read, for progress. All leaves are read twice, and they are most of the blocks. */
static uint64_t blocks_due(const struct btrkit_usage *u)
{
	uint64_t due = 0;

	for (size_t i = 0; i < u->num_owners; i++)
		if (u->owners[i].kind == BTRKIT_USAGE_SUBVOLUME)
			due += 2 * u->owners[i].referenced.blocks;
	return due;
}

/*
 * Initializes the state. Damage that was reported while the usage by subvolumes was determined is not reported again.
 */
static void start(struct paths_work *pw, struct btrkit_fs *fs, const struct btrkit_usage *u)
{
	const struct btrkit_usage_paths_options *opts = &pw->opts;
	const size_t reported = u->reported.n * sizeof(struct usage_location);

	pw->counted.reported.at = reported ? malloc(reported) : NULL;
	if (pw->counted.reported.at) {
		memcpy(pw->counted.reported.at, u->reported.at, reported);
		pw->counted.reported.n = pw->counted.reported.room = u->reported.n;
	}
	pw->counted.sectorsize = u->sectorsize;
	pw->counted.nodesize = u->nodesize;
	pw->w.u = &pw->counted;
	pw->w.fs = fs;
	pw->w.opts = (struct btrkit_usage_options){ .threads = opts->threads,
						    .progress = opts->progress,
						    .progress_ctx = opts->progress_ctx,
						    .damage = opts->damage,
						    .damage_ctx = opts->damage_ctx };
	pw->w.threads = usage_threads(opts->threads);
	pw->w.due = blocks_due(u);
	pthread_mutex_init(&pw->w.lock, NULL);
}

static void release(struct paths_work *pw)
{
	free(pw->counted.reported.at);
	paths_ranges_release(&pw->ranges);
	free(pw->subvolumes);
	free(pw->dirs);
	free(pw->found.at);
	pthread_mutex_destroy(&pw->w.lock);
	free(pw);
}

int btrkit_usage_paths_load(struct btrkit_fs *fs, struct btrkit_usage *u, const struct btrkit_usage_paths_options *opts,
			    struct btrkit_usage_paths **ret, struct btrkit_error *err)
{
	static const struct btrkit_usage_paths_options defaults = BTRKIT_USAGE_PATHS_OPTIONS_INIT;
	struct paths_work *pw;
	int r;

	if (!opts)
		opts = &defaults;
	if (opts->flags & ~(unsigned)BTRKIT_USAGE_PATHS_LIMITED)
		return err_set(err, BTRKIT_INVALID, "unknown flag");
	r = fs_check_committed(fs, err);
	if (r)
		return r;
	pw = calloc(1, sizeof(*pw));
	if (!pw)
		return err_nomem(err);
	pw->opts = *opts;
	pw->usage = u;
	start(pw, fs, u);
	pw->p = calloc(1, sizeof(*pw->p));
	r = pw->p ? load(pw, err) : err_nomem(err);
	if (r)
		btrkit_usage_paths_free(pw->p);
	else
		*ret = pw->p;
	release(pw);
	return r;
}

struct btrkit_usage_paths *btrkit_usage_paths_free(struct btrkit_usage_paths *p)
{
	if (!p)
		return NULL;
	free(p->nodes);
	free(p->names.at);
	free(p->tops);
	free(p);
	return NULL;
}

size_t btrkit_usage_paths_num(const struct btrkit_usage_paths *p)
{
	return p->num_nodes;
}

void btrkit_usage_paths_get(const struct btrkit_usage_paths *p, size_t i, struct btrkit_usage_path *ret)
{
	const struct paths_node *n = &p->nodes[i];

	*ret = (struct btrkit_usage_path){
		.root = n->subvolume,
		.inode = n->inode,
		.parent = n->parent == PATHS_NONE ? SIZE_MAX : n->parent,
		.end = n->end,
		.depth = n->depth,
		.name = p->names.at ? (const char *)p->names.at + n->name : "",
		.name_len = n->name_len,
		.total = atomic_load_explicit(&n->total, memory_order_relaxed),
		.unshared = atomic_load_explicit(&n->unshared, memory_order_relaxed),
		.set_shared = n->set_shared,
		.frees = n->frees,
	};
}

int btrkit_usage_paths_find(const struct btrkit_usage_paths *p, uint64_t root, size_t *ret)
{
	size_t low = 0, high = p->num_tops;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (p->tops[mid].id < root)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == p->num_tops || p->tops[low].id != root)
		return -ENOENT;
	*ret = p->tops[low].node;
	return 0;
}
