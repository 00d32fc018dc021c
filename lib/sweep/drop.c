// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/sweep/drop.h"

struct sweep_drop sweep_drop_of(const struct root_item *root)
{
	return (struct sweep_drop){ root->drop_progress, root->drop_level,
				    !root->refs && root->drop_progress.objectid };
}

uint32_t sweep_drop_first(const struct sweep_drop *d, const struct node *n, bool *cut)
{
	bool exact;
	uint32_t slot;

	if (cut)
		*cut = n->level > d->level;
	if (n->level < d->level)
		return 0;
	slot = node_lower_bound(n, &d->key, &exact);
	/* The key may be in the child before. */
	return n->level > d->level && !exact && slot ? slot - 1 : slot;
}
