// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the free space tree with the gaps between extents. */
#include <inttypes.h>

#include "lib/check/codes.h"
#include "lib/check/findings.h"
#include "lib/check/space/space_gaps.h"
#include "lib/check/space/space_tree.h"
#include "lib/check/state.h"
#include "lib/check/trees/items.h"
#include "lib/space/free_space_tree.h"

/*
 * mkfs.btrfs up to 6.2 leaves behind free space items of its temporary block groups, which end here. They are harmless,
 * because no block group is created there later.
 */
#define MKFS_TEMPORARY_END (21ull << 20)

static int report_stray(void *ctx, const struct range *range)
{
	struct check *c = ctx;
	const bool temporary = range->start < MKFS_TEMPORARY_END && range->length <= MKFS_TEMPORARY_END - range->start;

	if (!c->groups_lost && !c->chunks_lost)
		check_report_at(c, temporary ? CHECK_SPACE_LEFTOVER : CHECK_SPACE_STRAY,
				&(struct check_location){ OID_FREE_SPACE_TREE, 0,
							  &KEY(range->start, KEY_FREE_SPACE_INFO, range->length),
							  "key.objectid" },
				"free space outside any block group");
	return 0;
}

static int next_range(void *cache, struct range *ret, struct btrkit_error *err)
{
	return free_space_tree_next(cache, ret, err);
}

static void report_tree(struct check *c, enum check_code code, int ret, struct btrkit_error *what)
{
	if (ret == -ENOMEM) {
		check_fail(c, ret, what);
	} else if (ret == -EUCLEAN) {
		err_at_tree(what, OID_FREE_SPACE_TREE);
		check_report(c, code, what);
	}
}

static void validate_group(struct space *s, struct free_space_tree *t, const struct check_group *g)
{
	const struct block_group group = space_group(g);
	struct gaps gaps = { .s = s, .group = { g->start, g->length }, .pos = g->start };
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	int ret = free_space_tree_enter(t, &group, &what);

	/* A block group without a chunk was reported. */
	if (ret > 0 && g->chunk)
		check_report_at(s->c, CHECK_SPACE_INFO,
				&(struct check_location){ OID_FREE_SPACE_TREE, 0,
							  &KEY(g->start, KEY_FREE_SPACE_INFO, g->length) },
				"block group has no free space info");
	else if (ret < 0)
		report_tree(s->c, CHECK_SPACE_INFO, ret, &what);
	if (ret)
		return;
	ret = space_compare(&gaps, next_range, t, CHECK_SPACE_WRONG, OID_FREE_SPACE_TREE, &what);
	if (ret)
		report_tree(s->c, CHECK_SPACE_ITEM, ret, &what);
}

static void pass(void *ctx, const struct item *item)
{
	(void)ctx;
	(void)item;
}

void space_check_tree(struct check *c, const struct tree_root *root)
{
	const struct check_group *groups = c->groups.at;
	struct btrkit_error what = BTRKIT_ERROR_INIT;
	struct space s = { .c = c };
	struct free_space_tree t;
	bool lost = false;
	int ret;

	/* Unreadable blocks are reported elsewhere, and without them nothing can be said about block groups. */
	if (check_each_item(c, root, &lost, pass, NULL) || lost)
		return;
	ret = free_space_tree_begin(&t, c->fs, report_stray, c, &what);
	for (size_t i = 0; !ret && i < c->groups.n && !check_failed(c); i++)
		if (groups[i].chunk || groups[i].item)
			validate_group(&s, &t, &groups[i]);
	if (!ret)
		ret = free_space_tree_end(&t, &what);
	if (ret)
		report_tree(c, CHECK_SPACE_ITEM, ret, &what);
	if (t.outside && !c->groups_lost && !c->chunks_lost)
		check_report_at(c, CHECK_SPACE_STRAY, &(struct check_location){ OID_FREE_SPACE_TREE },
				"%" PRIu64 " free space items outside any block group", t.outside);
	free_space_tree_release(&t);
}
