// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares recorded used and free space with the extents. */
#include "lib/check/findings.h"
#include "lib/check/space/space.h"
#include "lib/check/space/space_cache_v1.h"
#include "lib/check/space/space_tree.h"
#include "lib/check/state.h"
#include "lib/check/trees/roots.h"
#include "lib/format/feature_bits.h"

#include <inttypes.h>

static void check_groups(struct check *c)
{
	const struct check_group *groups = c->groups.at;
	uint64_t totals[] = { c->fs->super.bytes_used, 0 };

	for (size_t i = 0; i < c->groups.n; i++) {
		const uint64_t values[] = { groups[i].said_used, groups[i].used };

		totals[1] += groups[i].used;
		if (groups[i].item && values[0] != values[1])
			check_report_at(c, CHECK_GROUP_USED,
					&(struct check_location){
						c->group_tree, 0,
						&KEY(groups[i].start, KEY_BLOCK_GROUP_ITEM, groups[i].length), "used",
						.values = values },
					"wrong number of used bytes in the block group");
	}
	if (!c->chunks_lost && totals[0] != totals[1])
		check_report_at(c, CHECK_BYTES_USED,
				&(struct check_location){ .field = "bytes_used", .values = totals },
				"wrong number of used bytes in the superblock");
}

int check_space(struct check *c)
{
	const struct super *super = &c->fs->super;
	const bool has = super->compat_ro & COMPAT_RO_FREE_SPACE_TREE;
	const struct check_root *tree = check_find_root(c, OID_FREE_SPACE_TREE);

	if (c->extents_lost)
		return 0;
	check_groups(c);
	if (has != !!tree && (tree || !c->roots_lost))
		check_report_at(c, CHECK_SPACE_FEATURE, &(struct check_location){ .field = "compat_ro_flags" }, "%s",
				has ? "free-space-tree is set, but there is no free space tree" :
				      "there is a free space tree, but free-space-tree is not set");
	/* Linux rebuilds a free space tree that is not marked as valid. */
	if (has && tree && super->compat_ro & COMPAT_RO_FREE_SPACE_TREE_VALID)
		space_check_tree(c, &tree->root);
	if (!has && super->cache_generation == super->generation)
		space_check_caches(c);
	return c->failed;
}
