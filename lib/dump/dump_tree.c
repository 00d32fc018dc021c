// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/err.h"
#include "lib/dump/dump_tree_damage.h"
#include "lib/dump/dump_tree_lines.h"
#include "lib/dump/dump_tree_trees.h"
#include "lib/dump/dump_tree_walk.h"
#include "lib/format/item.h"

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Dumps each block once, in the order of addresses. */
static int dump_chosen_blocks(struct dump_report *r, struct btrkit_error *err)
{
	const struct btrkit_dump_options *o = r->o;
	struct dump_what what = { .order = o->flags & BTRKIT_DUMP_FOLLOW ? report_order(r) : DUMP_ONE_BLOCK };
	uint64_t *blocks = calloc(o->num_blocks, sizeof(*blocks));
	int ret = 0;

	if (!blocks)
		return err_nomem(err);
	memcpy(blocks, o->blocks, o->num_blocks * sizeof(*blocks));
	qsort(blocks, o->num_blocks, sizeof(*blocks), compare_u64);
	for (size_t i = 0; i < o->num_blocks && !ret; i++) {
		struct node_ref ref = { blocks[i], NODE_ANY, 0, LEVELS_MAX, NULL };

		if (i && blocks[i] == blocks[i - 1])
			continue;
		if (blocks[i] % r->fs->geometry.sectorsize)
			ret = err_set(err, BTRKIT_INVALID, "block %" PRIu64 " is not aligned to the sectorsize",
				      blocks[i]);
		else if (dump_select_tree(&r->select, 0, true, false, &what))
			ret = dump_tree_walk(&r->run, &ref, &what, err);
	}
	free(blocks);
	return ret;
}

/* Finishes the dump: write everything, including the first line if nothing else was dumped. */
static int end(struct dump_report *r, struct btrkit_error *err)
{
	struct dump *d;
	int ret = dump_run_text(&r->run, &d, err);

	if (!ret)
		dump_begin(d);
	if (!ret)
		ret = dump_run_drain(&r->run, err);
	if (ret || !r->run.damage)
		return ret;
	if (err)
		*err = r->run.damage_error;
	return r->run.damage;
}

/* Report that chunks could not be read. Blocks in them will not be found. */
static int tell_partial(struct dump_report *r, struct btrkit_error *err)
{
	struct dump *d;
	int ret = r->fs->damage ? dump_run_text(&r->run, &d, err) : 0;

	if (!ret && r->fs->damage)
		dump_damaged_chunks(d, r->fs->damage, &r->fs->damage_error);
	return ret;
}

/* If the dump fails, what was dumped before the failure is still written. */
static int run(struct dump_report *r, struct btrkit_error *err)
{
	int ret = tell_partial(r, err), drained;

	if (!ret)
		ret = r->o->num_blocks ? dump_chosen_blocks(r, err) : dump_report_trees(r, err);

	if (!ret)
		return end(r, err);
	drained = dump_run_drain(&r->run, NULL);
	(void)drained;
	return ret;
}

int btrkit_dump_tree(struct btrkit_fs *fs, const struct btrkit_dump_options *opts, btrkit_write_fn write, void *ctx,
		     struct btrkit_error *err)
{
	static const struct btrkit_dump_options everything = BTRKIT_DUMP_OPTIONS_INIT;
	const struct btrkit_dump_options *o = opts ? opts : &everything;
	struct dump_report r = { .fs = fs, .o = o, .flags = o->flags, .named = o->num_trees };
	struct dump like;
	int ret = dump_like(fs, o, &like, err);

	if (ret)
		return ret;
	ret = dump_select_begin(fs, o, &r.select, err);
	if (!ret) {
		ret = dump_run_begin(&r.run, &like, write, ctx, err);
		if (!ret)
			ret = run(&r, err);
		dump_run_end(&r.run);
	}
	dump_select_end(&r.select);
	dump_choice_free(&like.choice);
	return ret;
}
